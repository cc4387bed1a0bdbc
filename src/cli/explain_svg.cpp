#include "cli/explain_svg.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "cli/svg_text.h"

namespace millrace::cli {
namespace {

constexpr int kRow = 24, kBox = 18, kTop = 60, kLeft = 260, kWidth = 900;

const char* colour(Phase phase) {
  switch (phase) {
    case Phase::forward:
      return "#2f7ed8";
    case Phase::backward:
      return "#d9822b";
    case Phase::update:
      return "#3d9970";
  }
  return "";
}

std::string curve(int from, int to) {
  const int y0 = kTop + from * kRow + kBox / 2, y1 = kTop + to * kRow + kBox / 2;
  // The farther, the wider, but never beyond the margin.
  const double reach = std::min(kLeft - 10.0, 18 * std::sqrt(static_cast<double>(to - from)));
  return fmt::format("<path d=\"M{0} {1} C{2:.0f} {1} {2:.0f} {3} {0} {3}\"/>\n", kLeft, y0, kLeft - reach,
                     y1);
}

}  // namespace

std::string launches_svg(const std::vector<LaunchInfo>& launches, const std::string& title) {
  const int height = kTop + kRow * static_cast<int>(launches.size()) + 20;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
      "font-family=\"system-ui, sans-serif\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" "
      "fill=\"#fff\"/>\n"
      "<text x=\"10\" y=\"22\" font-size=\"15\">{2}</text>\n"
      "<text x=\"10\" y=\"42\">{3} launches; <tspan fill=\"{4}\">forward</tspan>, <tspan "
      "fill=\"{5}\">backward</tspan>, "
      "<tspan fill=\"{6}\">optimiser</tspan>; a curve leads from a launch to one that reads its "
      "result</text>\n"
      "<g fill=\"none\" stroke=\"#8a94a3\" stroke-opacity=\"0.55\">\n",
      kLeft + kWidth, height, svg_escaped(title), launches.size(), colour(Phase::forward),
      colour(Phase::backward), colour(Phase::update));
  for (size_t i = 0; i < launches.size(); ++i)
    for (const int from : launches[i].reads) svg += curve(from, static_cast<int>(i));
  svg += "</g>\n";
  for (size_t i = 0; i < launches.size(); ++i) {
    const LaunchInfo& l = launches[i];
    const int y = kTop + static_cast<int>(i) * kRow;
    std::string operation = l.operation.size() > 60 ? l.operation.substr(0, 60) + " …)" : l.operation;
    svg += fmt::format(
        "<g><title>{}</title><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"3\" fill=\"{}\"/>"
        "<text x=\"{}\" y=\"{}\" fill=\"#fff\">{} {}{}</text></g>\n",
        svg_escaped(fmt::format("{}: {} -> {} [{}]", l.provider, l.operation, l.types, l.kernel)), kLeft, y,
        kWidth - 20, kBox, colour(l.origin.phase), kLeft + 6, y + 13, i, svg_escaped(operation),
        svg_escaped(l.origin.empty() ? "" : " in " + l.origin.place()));
  }
  return svg + "</svg>\n";
}

}  // namespace millrace::cli
