#include "cli/graph_svg.h"

#include <algorithm>

#include "base/format.h"
#include "cli/svg_text.h"
#include "cli/table.h"

namespace millrace::cli {
namespace {

constexpr int kWide = 200, kHigh = 34, kAcross = 230, kDown = 62, kTop = 60;

struct Box {
  std::string head, small, tip;
  std::vector<int> reads;
  double share = 0;   // of all operations
  bool port = false;  // an input or output of the model
  int layer = 0;
  double at = 0;  // across, in boxes
};

std::string shortened(const std::string& text, size_t most) {
  return text.size() <= most ? text : "…" + text.substr(text.size() - most + 1);
}

/// Inputs, rows, outputs.
std::vector<Box> boxes_of(const GraphSummary& summary, const std::vector<SessionValue>& inputs,
                          const std::vector<SessionValue>& outputs) {
  std::vector<Box> boxes;
  for (const SessionValue& input : inputs)
    boxes.push_back({input.name, input.type.str(), input.name + ": " + input.type.str(), {}, 0, true});
  const int first = static_cast<int>(boxes.size());
  for (const SummaryRow& row : summary.rows) {
    Box box{row.operation, row.types, "", row.inputs, 0, false};
    for (const int from : row.reads) box.reads.push_back(first + from);
    if (summary.flops > 0) box.share = row.flops / summary.flops;
    box.tip = fmt::format("{}{}\n{}\n{}, {}{}", row.operation, row.name.empty() ? "" : " in " + row.name,
                          row.types, flops_text(row.flops), bytes_text(row.bytes),
                          row.parameters > 0 ? fmt::format(", {} parameters", row.parameters) : "");
    boxes.push_back(std::move(box));
  }
  for (size_t r = 0; r < summary.rows.size(); ++r)
    for (const int o : summary.rows[r].outputs)
      boxes.push_back({outputs[static_cast<size_t>(o)].name,
                       outputs[static_cast<size_t>(o)].type.str(),
                       "an output",
                       {first + static_cast<int>(r)},
                       0,
                       true});
  return boxes;
}

/// Each box below all that it reads; beside each other in the order of what they read. The number of layers.
int lay_out(std::vector<Box>& boxes) {
  std::vector<std::vector<int>> layers;
  for (size_t i = 0; i < boxes.size(); ++i) {
    for (const int from : boxes[i].reads)
      boxes[i].layer = std::max(boxes[i].layer, boxes[static_cast<size_t>(from)].layer + 1);
    layers.resize(std::max(layers.size(), static_cast<size_t>(boxes[i].layer) + 1));
    layers[static_cast<size_t>(boxes[i].layer)].push_back(static_cast<int>(i));
  }
  for (std::vector<int>& layer : layers) {
    std::vector<double> wish(boxes.size(), 0);
    for (const int i : layer) {
      const Box& box = boxes[static_cast<size_t>(i)];
      for (const int from : box.reads)
        wish[static_cast<size_t>(i)] +=
            boxes[static_cast<size_t>(from)].at / static_cast<double>(box.reads.size());
    }
    std::stable_sort(layer.begin(), layer.end(), [&](int a, int b) {
      return wish[static_cast<size_t>(a)] < wish[static_cast<size_t>(b)];
    });
    double next = -1e9;
    for (const int i : layer) {
      Box& box = boxes[static_cast<size_t>(i)];
      box.at = std::max(next, box.reads.empty() ? std::max(next, 0.0) : wish[static_cast<size_t>(i)]);
      next = box.at + 1;
    }
  }
  return static_cast<int>(layers.size());
}

const char* fill_of(const Box& box) {
  if (box.port) return "#dfe7f3";
  if (box.share > 0.05) return "#f4a582";
  if (box.share > 0.01) return "#fbd6c3";
  return box.share > 0 ? "#fdf0e9" : "#f4f4f4";
}

}  // namespace

std::string graph_svg(const GraphSummary& summary, const std::vector<SessionValue>& inputs,
                      const std::vector<SessionValue>& outputs, const std::string& title) {
  std::vector<Box> boxes = boxes_of(summary, inputs, outputs);
  const int layers = lay_out(boxes);
  double low = 0, high = 1;
  for (const Box& box : boxes) {
    low = std::min(low, box.at);
    high = std::max(high, box.at + 1);
  }
  const auto x = [&](const Box& box) { return 30 + static_cast<int>((box.at - low) * kAcross); };
  const auto y = [&](const Box& box) { return kTop + box.layer * kDown; };
  const int width = 80 + std::max(static_cast<int>((high - low) * kAcross), 640),
            height = kTop + layers * kDown;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
      "font-family=\"system-ui, sans-serif\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" "
      "fill=\"#fff\"/>\n<text x=\"10\" y=\"22\" font-size=\"15\">{2}</text>\n"
      "<text x=\"10\" y=\"42\">{3} operators, {4} parameters, {5}; red: where the operations are</text>\n"
      "<g fill=\"none\" stroke=\"#8a94a3\">\n",
      width, height, svg_escaped(title), summary.rows.size(),
      number_text(static_cast<double>(summary.parameters)), flops_text(summary.flops));
  for (const Box& box : boxes)
    for (const int from : box.reads) {
      const Box& source = boxes[static_cast<size_t>(from)];
      const int x0 = x(source) + kWide / 2, y0 = y(source) + kHigh, x1 = x(box) + kWide / 2, y1 = y(box);
      // What skips layers goes round the boxes between.
      const int aside = box.layer - source.layer > 1 ? kWide / 2 + 24 : 0;
      svg += fmt::format("<path d=\"M{} {} C{} {} {} {} {} {}\"/>\n", x0, y0, x0 + aside, y0 + 14, x1 + aside,
                         y1 - 14, x1, y1);
    }
  svg += "</g>\n";
  for (const Box& box : boxes)
    svg += fmt::format(
        "<g><title>{}</title><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"4\" fill=\"{}\" "
        "stroke=\"#b8bec8\"/><text x=\"{}\" y=\"{}\">{}</text><text x=\"{}\" y=\"{}\" font-size=\"9\" "
        "fill=\"#555\">{}</text></g>\n",
        svg_escaped(box.tip), x(box), y(box), kWide, kHigh, fill_of(box), x(box) + 6, y(box) + 14,
        svg_escaped(shortened(box.head, 32)), x(box) + 6, y(box) + 27, svg_escaped(shortened(box.small, 42)));
  return svg + "</svg>\n";
}

}  // namespace millrace::cli
