// A model's graph, before anything is compiled.
#include <algorithm>
#include <fmt/core.h>
#include <map>

#include <millrace/session.h>

#include "base/file.h"
#include "base/format.h"
#include "base/section_file.h"
#include "base/size_text.h"
#include "cli/graph_svg.h"
#include "cli/json.h"
#include "cli/model_sizes.h"
#include "cli/outputs.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "model_formats/mill.h"
#include "session/format.h"
#include "session/summary.h"

namespace millrace::cli {
namespace {

struct InspectArguments {
  std::string model, sizes, svg;
  bool json = false, verify = false;
};

std::string values_text(const char* what, const std::vector<SessionValue>& values) {
  std::string text;
  for (const SessionValue& value : values)
    text += fmt::format(
        "{} {}: {}{}\n", what, value.name, value.type.str(),
        value.data_axis < 0 ? "" : fmt::format("; its size along axis {} depends on data", value.data_axis));
  return text;
}

/// "12, 14"; nothing when it is the row before.
std::string reads_text(const SummaryRow& row, size_t number, const std::vector<SessionValue>& inputs) {
  if (row.inputs.empty() && row.reads.size() == 1 && row.reads[0] + 1 == static_cast<int>(number)) return "";
  std::string text;
  for (const int from : row.reads) text += fmt::format("{}{}", text.empty() ? "" : ", ", from);
  for (const int input : row.inputs)
    text += fmt::format("{}{}", text.empty() ? "" : ", ", inputs[static_cast<size_t>(input)].name);
  return text;
}

std::string dash_if_none(double value, const std::string& text) { return value > 0 ? text : ""; }

std::string kinds_text(const GraphSummary& summary) {
  struct Sum {
    int64_t count = 0, parameters = 0;
    double flops = 0, bytes = 0;
  };
  std::map<std::string, Sum> kinds;
  for (const SummaryRow& row : summary.rows) {
    Sum& sum = kinds[row.operation];
    ++sum.count;
    sum.parameters += row.parameters;
    sum.flops += row.flops;
    sum.bytes += row.bytes;
  }
  std::vector<std::pair<std::string, Sum>> order(kinds.begin(), kinds.end());
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second.flops, a.second.bytes) > std::pair(b.second.flops, b.second.bytes);
  });
  Table table({"<operator", "count", "operations", "of all", "bytes", "parameters"});
  for (const auto& [name, sum] : order)
    table.row({name, std::to_string(sum.count), dash_if_none(sum.flops, flops_text(sum.flops)),
               dash_if_none(sum.flops, percent_text(sum.flops / std::max(summary.flops, 1.0))),
               bytes_text(sum.bytes),
               dash_if_none(static_cast<double>(sum.parameters), thousands(sum.parameters))});
  return "\nOperators\n" + table.str();
}

std::string rows_text(const GraphSummary& summary, const SessionModel& model) {
  Table table({"#", "<operator", "<result", "operations", "bytes", "parameters", "<reads", "<name"});
  for (size_t i = 0; i < summary.rows.size(); ++i) {
    const SummaryRow& row = summary.rows[i];
    std::string name = row.name;
    for (const int output : row.outputs)
      name += fmt::format("{}→ {}", name.empty() ? "" : " ", model.outputs[static_cast<size_t>(output)].name);
    table.row({std::to_string(i), row.operation, row.types, dash_if_none(row.flops, flops_text(row.flops)),
               bytes_text(row.bytes),
               dash_if_none(static_cast<double>(row.parameters), thousands(row.parameters)),
               reads_text(row, i, model.inputs), name});
  }
  return "\nThe graph, in order (reads: rows or inputs; empty: the row before)\n" + table.str();
}

Json values_json(const std::vector<SessionValue>& values) {
  std::vector<Json> list;
  for (const SessionValue& value : values) {
    std::vector<std::pair<std::string, Json>> fields = {{"name", value.name}, {"type", value.type.str()}};
    if (value.data_axis >= 0) fields.emplace_back("sized_by_data", value.data_axis);
    list.push_back(json_object(fields));
  }
  return {list};
}

Json inspect_json(const GraphSummary& summary, const SessionModel& model, const std::string& name,
                  const std::string& format, const Bindings& sizes) {
  std::vector<Json> rows;
  for (const SummaryRow& row : summary.rows)
    rows.push_back(json_object({{"operator", Json(row.operation)},
                                {"name", row.name},
                                {"types", row.types},
                                {"reads", row.reads},
                                {"inputs", row.inputs},
                                {"outputs", row.outputs},
                                {"flops", row.flops},
                                {"bytes", row.bytes},
                                {"parameters", row.parameters}}));
  return json_object({{"name", Json(name)},
                      {"format", format},
                      {"inputs", values_json(model.inputs)},
                      {"outputs", values_json(model.outputs)},
                      {"sizes", json_object(sizes)},
                      {"parameters", summary.parameters},
                      {"parameter_bytes", summary.parameter_bytes},
                      {"flops", summary.flops},
                      {"bytes", summary.bytes},
                      {"rows", rows}});
}

int run_inspect(const InspectArguments& a) {
  require_named(a.svg, "--svg");
  const bool built = SectionFile::begins(a.model, mill::kMagic);
  if (a.verify) {
    if (!built) fail<InputError>("--verify: {} is no built model (.mill)", a.model);
    mill::verify(a.model);
    fmt::print("{}: every byte is as it was written\n", a.model);
    return 0;
  }
  std::string format;
  const SessionModel model = load_session_model(a.model, &format);
  for (const std::string& line : model.notes) fmt::print(stderr, "{}\n", line);
  Bindings sizes = example_sizes(model.inputs, parse_sizes(a.sizes, model.inputs));
  if (built && a.sizes.empty()) sizes = mill::sizes_of(a.model).front();
  const Graph graph = specialise(model.graph(sizes), sizes);
  GraphSummary summary = summarise(graph, static_cast<int>(model.inputs.size()));
  for (SummaryRow& row : summary.rows)  // behind the model's outputs stand how large they are
    std::erase_if(row.outputs, [&](int output) { return output >= std::ssize(model.outputs); });
  const std::string at = sizes.empty() ? "" : fmt::format(" ({})", sizes_text(sizes));
  if (!a.svg.empty()) write_file(a.svg, graph_svg(summary, model.inputs, model.outputs, a.model + at));
  if (a.json) {
    print_json(inspect_json(summary, model, a.model, format, sizes));
    return 0;
  }
  if (built)
    for (const std::string& line : mill::describe(a.model)) fmt::print("{}\n", line);
  fmt::print("{}, {}\n{}{}", a.model, format, values_text("input ", model.inputs),
             values_text("output", model.outputs));
  fmt::print("{} operators, {} parameters in {}, {}, {} read and written at least{}\n", summary.rows.size(),
             thousands(summary.parameters), bytes_text(static_cast<double>(summary.parameter_bytes)),
             flops_text(summary.flops), bytes_text(summary.bytes), at);
  fmt::print("{}{}", kinds_text(summary), rows_text(summary, model));
  if (!a.svg.empty()) fmt::print("\n{}: the graph, for any browser\n", a.svg);
  return 0;
}

Action declare_inspect(Command& command) {
  auto a = std::make_shared<InspectArguments>();
  command.positional("MODEL", a->model, "a model that a session loads: .onnx, .mill, a run folder")
      .option("--sizes", a->sizes, sizes_doc)
      .option("--svg", a->svg, "draw the graph")
      .flag("--verify", a->verify, "of a built model: check every byte, and nothing else")
      .flag("--json", a->json, "print one JSON object")
      .footer(
          "Says what a model takes, gives and consists of, with shapes, operations (a multiply-add is two), "
          "bytes and "
          "parameters,\nas it was read: nothing is optimised or compiled. millrace explain says what becomes "
          "of it.\n\n"
          "  millrace inspect model.onnx --svg model.svg\n"
          "  millrace inspect runs/letters-1 --sizes batch=32\n");
  return [a] { return run_inspect(*a); };
}

}  // namespace

MILLRACE_VERB(inspect){"inspect", "show a model's graph with shapes, operations, bytes and parameters",
                       declare_inspect, 105};

}  // namespace millrace::cli
