#include "onnx/import/size_decisions.h"

#include <algorithm>
#include <string_view>

#include "base/contains.h"
#include "base/format.h"

namespace millrace::onnx {
namespace {

/// What is computed of sizes by these is made of sums and products of them, whatever they are.
bool keeps_formulas(std::string_view op) {
  constexpr std::string_view such[] = {"Add",
                                       "Concat",
                                       "Expand",
                                       "Flatten",
                                       "Gather",
                                       "GatherElements",
                                       "GatherND",
                                       "Identity",
                                       "Mul",
                                       "Neg",
                                       "ReduceSum",
                                       "ReduceProd",
                                       "Reshape",
                                       "Shape",
                                       "Size",
                                       "Slice",
                                       "Split",
                                       "Squeeze",
                                       "Sub",
                                       "Sum",
                                       "Tile",
                                       "Transpose",
                                       "Unsqueeze",
                                       "Where",
                                       "Cast",
                                       "Floor",
                                       "Ceil",
                                       "Round",
                                       "Div",
                                       "SequenceAt",
                                       "ScatterElements",
                                       "ScatterND"};
  return contains(such, op);
}

bool all_of(const Array& array, const auto& holds) {
  for (int64_t i = 0; i < array.count(); ++i)
    if (!holds(array.at(i))) return false;
  return true;
}

const Array* known(const Graph& graph, const Item& item) {
  return item.form == Item::Form::tensor ? graph.constant_value(item.value) : nullptr;
}

/// Whether a node that rounds had nothing to round.
bool rounds_nothing(const Graph& graph, const NodeProto& node, const Items& operands, const Items& results) {
  const Array* const x = known(graph, operands[0]);
  const Array* const y = results.empty() ? nullptr : known(graph, results[0]);
  if (!x || !y) return false;
  if (node.op_type == "Div") {
    const Array* const by = known(graph, operands[1]);
    if (!by || x->dtype().is_float()) return true;
    for (int64_t i = 0; i < y->count(); ++i) {
      // Where they are broadcast, only single numbers are followed.
      const int64_t of_x = x->count() == y->count() ? i : 0, of_by = by->count() == y->count() ? i : 0;
      if (y->at(i) * by->at(of_by) != x->at(of_x)) return false;
    }
    return true;
  }
  if (node.op_type == "Cast" && y->dtype() == boolean) return false;
  if (x->count() != y->count()) return false;
  for (int64_t i = 0; i < x->count(); ++i)
    if (x->at(i) != y->at(i) && (!y->dtype().is_float() || node.op_type != "Cast")) return false;
  return true;
}

/// Sizes are compared with what none can be: −1, which stands for "as it is".
bool compares_with_negatives(const Graph& graph, const NodeProto& node, const Items& operands) {
  if (node.op_type != "Equal" || operands.size() != 2) return false;
  const auto sizes = [&](const Item& item) {
    const Array* const array = known(graph, item);
    return item.of_sizes && array && all_of(*array, [](double x) { return x >= 0 || x == -1; });
  };
  const auto negative = [&](const Item& item) {
    const Array* const array = known(graph, item);
    return !item.of_sizes && array && all_of(*array, [](double x) { return x < 0; });
  };
  return (sizes(operands[0]) && negative(operands[1])) || (sizes(operands[1]) && negative(operands[0]));
}

/// Numbers as a text, the first ones of many.
std::string shown(const Array& array) {
  std::string text;
  for (int64_t i = 0; i < std::min<int64_t>(array.count(), 64); ++i) text += fmt::format(" {}", array.at(i));
  return text;
}

/// One number of many, as many as a size says: what it is may be anything that is made of the size.
bool sums_up(std::string_view op) { return op.starts_with("Reduce") || op.starts_with("Arg"); }

/// As much of a table as a size says is a constant of that size.
bool begins_a_table(const Graph& graph, const NodeProto& node, const Items& operands) {
  if (node.op_type != "Slice" || operands.size() < 3 || operands[0].of_sizes) return false;
  const Array* const starts = known(graph, operands[1]);
  return starts && all_of(*starts, [](double x) { return x == 0; });
}

}  // namespace

bool repeats(const Graph& graph, const NodeProto& node, const Items& operands) {
  if (operands.size() != 2 || operands[0].form != Item::Form::tensor || operands[0].bounded_axis >= 0)
    return false;
  const Type& of = graph.type(operands[0].value);
  if (node.op_type == "Expand") return operands[1].of_sizes && of.dtype.is_float();
  if (node.op_type != "Gather" || !operands[1].sized || operands[0].sized || of.shape.rank() < 2)
    return false;
  const AttributeProto* const axis = node.find("axis");
  const Array* const indices = known(graph, operands[1]);
  return (!axis || axis->integer == 0) && indices && indices->count() > 0 &&
         all_of(*indices, [&](double x) { return x == indices->at(0); });
}

std::string follow_sizes(const Graph& graph, const NodeProto& node, const Items& operands, Items& results) {
  const std::string_view op = node.op_type;
  const auto any = [&](bool Item::*what) {
    return std::any_of(operands.begin(), operands.end(), [&](const Item& x) { return x.*what; });
  };
  const bool asks = (op == "Shape" || op == "Size") && !operands.empty(),
             measures = asks && (operands[0].sized || !known(graph, operands[0]));
  if (asks && !measures) return {};  // how many sizes there are, say
  const bool of_sizes = any(&Item::of_sizes), sized = any(&Item::sized);
  if (!measures && !of_sizes && !sized) return {};
  // What is left to the program is computed from the sizes that it is run for.
  const bool all_known = std::all_of(results.begin(), results.end(),
                                     [&](const Item& x) { return !x.is_something() || known(graph, x); });
  if (!all_known || results.empty()) return {};
  const auto mark = [&](bool Item::*as) {
    for (Item& each : results) each.*as = true;
    return std::string();
  };
  std::string given;
  if (!of_sizes && !measures) {
    const Array* const array = known(graph, results[0]);
    constexpr int64_t few = 16;  // summed up, or taken out of many
    if (!array || array->count() > few) return mark(&Item::sized);
    return sums_up(op) ? shown(*array) : mark(&Item::of_sizes);
  }
  // As many zeros or numbers as a size says are a constant of that size.
  if (op == "ConstantOfShape" || op == "Range" || op == "EyeLike" || op == "OneHot" ||
      begins_a_table(graph, node, operands))
    return mark(&Item::sized);
  if (compares_with_negatives(graph, node, operands)) return {};
  const bool rounds = op == "Div" || op == "Cast" || op == "Floor" || op == "Ceil" || op == "Round";
  if (keeps_formulas(op) && (!rounds || rounds_nothing(graph, node, operands, results))) {
    if (sized) (void)mark(&Item::sized);
    return mark(&Item::of_sizes);
  }
  for (const Item& each : operands)
    if (const Array* const array = known(graph, each)) given += shown(*array);
  return given;
}

}  // namespace millrace::onnx
