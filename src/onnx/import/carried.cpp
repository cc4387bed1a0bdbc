// How sizes that depend on data go through operators.
#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include <millrace/operator.h>

#include "base/format.h"
#include "onnx/import/bounded.h"

namespace millrace::onnx {
namespace {

using Rule = std::function<Items(ImportCall&)>;
using Names = std::set<std::string_view>;

/// Of operators with a rule: each element of the result is made of those at its place (numpy's broadcasts
/// included), or is moved.
const Names& by_element() {
  static const Names names = {"Acos",
                              "Acosh",
                              "Asin",
                              "Asinh",
                              "Atanh",
                              "BitShift",
                              "Cast",
                              "CastLike",
                              "Celu",
                              "Clip",
                              "Cosh",
                              "Dropout",
                              "Elu",
                              "Equal",
                              "Gelu",
                              "HardSigmoid",
                              "HardSwish",
                              "IsInf",
                              "LeakyRelu",
                              "Max",
                              "Mean",
                              "Min",
                              "Mish",
                              "Mod",
                              "OneHot",
                              "PRelu",
                              "Pow",
                              "Relu",
                              "Selu",
                              "Shrink",
                              "Sinh",
                              "Softplus",
                              "Squeeze",
                              "Sum",
                              "Swish",
                              "Tan",
                              "ThresholdedRelu",
                              "Transpose",
                              "Unsqueeze",
                              "Where"};
  return names;
}

/// Each place along the first axis of input 0 (RoiAlign: of its regions) is a sample of its own.
const Names& by_sample() {
  static const Names names = {"AveragePool",
                              "BatchNormalization",
                              "Conv",
                              "ConvTranspose",
                              "DepthToSpace",
                              "Gemm",
                              "GlobalAveragePool",
                              "GlobalMaxPool",
                              "GridSample",
                              "GroupNormalization",
                              "InstanceNormalization",
                              "LRN",
                              "LpPool",
                              "MaxPool",
                              "ArrayFeatureExtractor",
                              "Resize",
                              "SpaceToDepth",
                              "TreeEnsemble",
                              "TreeEnsembleRegressor"};
  return names;
}

/// What changes nothing where a reduction or the like goes along the axis.
std::optional<double> neutral(std::string_view op, DType dtype) {
  static const Names zeros = {"ReduceSum",       "ReduceMean",   "ReduceL1", "ReduceL2",
                              "ReduceSumSquare", "ReduceLogSum", "CumSum"};
  static const Names low = {"ReduceMax", "ReduceLogSumExp", "ArgMax", "Softmax", "LogSoftmax", "Hardmax"};
  if (zeros.contains(op)) return 0;
  if (low.contains(op)) return lowest(dtype);
  if (op == "ReduceProd" || op == "CumProd") return 1;
  if (op == "ReduceMin" || op == "ArgMin") return highest(dtype);
  return std::nullopt;
}

/// The axes along which such an operator goes; nullopt: it is none of them.
std::optional<Ints> axes_of(const ImportCall& call, int rank) {
  const std::string& op = call.node.op_type;
  if (op.starts_with("Reduce")) return call.reduced_axes(rank);
  if (op == "CumSum" || op == "CumProd")
    return Ints{call.axis(static_cast<int64_t>(call.known_number(1)), rank)};
  if (op == "ArgMax" || op == "ArgMin" || op == "Split" || op == "Concat")
    return Ints{call.axis(call.integer("axis", 0), rank)};
  const bool softmax = op == "Softmax" || op == "LogSoftmax" || op == "Hardmax";
  const bool norm = op == "LayerNormalization" || op == "RMSNormalization";
  if (!softmax && !norm) return std::nullopt;
  const int64_t axis = call.axis(call.integer("axis", softmax && call.opset < 13 ? 1 : -1), rank);
  return numbered(axis, norm || call.opset < 13 ? rank : axis + 1);
}

class Carrier {
 public:
  Carrier(ImportCall& call, const Rule& run, bool elementwise)
      : call_(call), run_(run), elementwise_(elementwise) {
    for (int k = 0; k < call.count(); ++k)
      if (call.bounded(k)) bounded_.push_back(k);
  }

  Items result() {
    const std::string& op = call_.node.op_type;
    if (!call_.node.domain.empty() && call_.node.domain != "ai.onnx.ml" && call_.node.domain != "ai.onnx")
      return run_(call_);
    if (op == "MatMul") return product();
    if (op == "ScatterND" || op == "ScatterElements") return scattered();
    if (op == "GatherElements" && fits_gather_elements()) return alike(call_.items());
    if (elementwise_ || by_element().contains(op)) return alike(call_.items());
    const int first = bounded_[0];
    const int axis = call_.item(first).bounded_axis;
    const bool rois = op == "RoiAlign" && first >= 1;
    const bool points = op == "GridSample" && first == 1 && axis > 0 && axis + 1 < rank(1);
    if (op == "Resize" && !resizes_other_axes()) return run_(call_);
    if (points || (by_sample().contains(op) && first == 0 && axis == 0 && call_.integer("transA", 0) == 0) ||
        (rois && axis == 0) || (op == "Tile" && repeats_other_axes()))
      return alike(call_.items());
    const std::optional<Ints> axes = axes_of(call_, rank(first));
    if (!axes || (first != 0 && op != "Concat")) return run_(call_);
    if (std::find(axes->begin(), axes->end(), axis) == axes->end()) return alike(call_.items());
    if (op == "Concat") return concatenated(axis);
    return along(axis);
  }

 private:
  int rank(int k) const { return call_.graph.type(call_.item(k).value).shape.rank(); }

  static Items plain(Items items) {
    for (Item& item : items) {
      item.bounded_axis = -1;
      item.size = {};
    }
    return items;
  }

  /// All positions are treated alike: what becomes of the axis shows in what another size would become.
  Items alike(const Items& operands) {
    const int first = bounded_[0];
    ImportCall as_it_is = call_.with(call_.graph, plain(operands));
    Items results = run_(as_it_is);
    Graph scratch;
    Items larger;
    for (size_t k = 0; k < operands.size(); ++k) {
      const Item& item = operands[k];
      if (item.form != Item::Form::tensor) {
        larger.push_back(item);
        continue;
      }
      const Array* known = call_.graph.constant_value(item.value);
      Type type = call_.graph.type(item.value);
      if (item.bounded_axis >= 0) {
        Dim& dim = type.shape[static_cast<size_t>(item.bounded_axis)];
        dim = dim.size() + 1;
        known = nullptr;
      }
      larger.emplace_back(known ? scratch.constant(*known) : scratch.input(fmt::format("{}", k), type));
    }
    Items other;
    try {
      ImportCall more = call_.with(scratch, larger);
      other = run_(more);
    } catch (const InternalError&) {
      throw;
    } catch (const Error&) {
      call_.refuse_sizes(
          fmt::format("the size of its input '{}' depends on data, and its other inputs have fixed ones",
                      call_.node.inputs[static_cast<size_t>(first)]));
    }
    const int64_t most = size_of(call_.graph.type(call_.item(first).value), call_.item(first).bounded_axis);
    for (size_t i = 0; i < results.size(); ++i)
      if (results[i].form == Item::Form::tensor && results[i].bounded_axis < 0)
        results[i] = sized(results[i].value, scratch.type(other.at(i).value), most);
    return results;
  }

  static int64_t size_of(const Type& type, int axis) { return type.shape[static_cast<size_t>(axis)].size(); }

  Item sized(Value value, const Type& larger, int64_t most) {
    const Type& type = call_.graph.type(value);
    if (type.shape.rank() != larger.shape.rank())
      call_.refuse_sizes("how many dimensions it gives depends on data");
    int axis = -1;
    for (int d = 0; d < type.shape.rank(); ++d) {
      if (size_of(type, d) == size_of(larger, d)) continue;
      if (axis >= 0) call_.refuse_two_sizes();
      axis = d;
    }
    if (axis < 0) return value;
    const int64_t each = size_of(larger, axis) - size_of(type, axis);
    if (each < 1 || each * most != size_of(type, axis))
      call_.refuse_sizes("how large its result is, depends on data in a way that is not known");
    const Value size = call_.item(bounded_[0]).size;
    return Item::bounded(value, axis, each == 1 ? size : call_.b.mul(size, static_cast<double>(each)));
  }

  /// What does not count is made to change nothing.
  Items along(int axis) {
    const std::string& op = call_.node.op_type;
    Items operands = call_.items();
    const Item item = operands[0];
    const DType dtype = call_.graph.type(item.value).dtype;
    const std::optional<double> nothing = neutral(op, dtype);
    if (!nothing) return run_(call_);
    if (op == "ReduceMean" && !dtype.is_float()) call_.refuse("means of whole numbers of which some count");
    operands[0].value = masked(call_, item.value, axis, item.size, *nothing);
    Items results = alike(operands);
    if (op != "ReduceMean") return results;
    // Divided by all places rather than by those that count.
    ops::Build& b = call_.b;
    const DType wide = ops::wide(dtype);
    const auto all = static_cast<double>(size_of(call_.graph.type(item.value), axis));
    const Value share = b.div(call_.scalar(wide, all), b.cast(item.size, wide));
    results[0] = Item(b.cast(b.mul(b.cast(results[0].value, wide), share), dtype));
    return results;
  }

  /// Rows and columns that do not count stay; what is summed over must be 0 there.
  Items product() {
    Items operands = call_.items();
    for (int k = 0; k < 2; ++k) {
      const int have = rank(k), axis = call_.item(k).bounded_axis;
      if (axis < 0 || axis != (k == 0 || have == 1 ? have - 1 : have - 2)) continue;
      const Value size = call_.item(k).size;
      for (int other = 0; other < 2; ++other) {  // the other one may hold anything there, NaN too
        Item& item = operands[static_cast<size_t>(other)];
        const int own = rank(other);
        item.value = masked(call_, item.value, other == 0 || own == 1 ? own - 1 : own - 2, size, 0);
      }
    }
    return alike(operands);
  }

  bool repeats_other_axes() const {
    if (!call_.known(1)) return false;
    const Ints repeats = call_.known_ints(1);
    return std::ssize(repeats) == rank(0) && repeats[static_cast<size_t>(call_.item(0).bounded_axis)] == 1;
  }

  /// Is the first axis, along which samples are counted, left as it is?
  bool resizes_other_axes() const {
    const std::optional<Ints> axes = call_.has("axes") ? std::optional(call_.ints("axes")) : std::nullopt;
    if (axes && std::find(axes->begin(), axes->end(), 0) == axes->end() &&
        std::find(axes->begin(), axes->end(), -rank(0)) == axes->end())
      return true;
    const int k = call_.opset < 11 ? 1 : 2;
    const Array* const scales = call_.known(k);
    return !axes && scales && scales->count() > 0 && scales->at(0) == 1;
  }

  bool fits_gather_elements() const {
    const int64_t axis = call_.axis(call_.integer("axis", 0), rank(0));
    return !call_.bounded(0) || (call_.bounded(1) && call_.item(0).bounded_axis != axis);
  }

  /// Updates that do not count go nowhere. Of data of which some counts, places are counted from its end.
  Items scattered() {
    const bool elements = call_.node.op_type == "ScatterElements";
    const bool first = elements ? call_.axis(call_.integer("axis", 0), rank(0)) == 0 : rank(1) > 1;
    const bool fits = (!call_.bounded(0) || call_.item(0).bounded_axis == 0) &&
                      (!call_.bounded(1) || call_.item(1).bounded_axis == 0);
    if (!first || !fits || (!call_.bounded(0) && !call_.bounded(1))) return run_(call_);
    Items operands = call_.items();
    Value& at = operands[1].value;
    ops::Build& b = call_.b;
    if (call_.bounded(0)) {
      if (!elements && b.shape(at).back() != 1) return run_(call_);
      at = b.cast(at, i64);
      const Value from_end = call_.graph.add("less", {at, b.fill(at, 0)});
      at = b.select(from_end, b.add(at, b.broadcast(operands[0].size, b.shape(at))), at);
    }
    const auto nowhere = static_cast<double>(size_of(call_.graph.type(operands[0].value), 0));
    if (call_.bounded(1)) at = masked(call_, at, 0, operands[1].size, nowhere);
    return alike(operands);
  }

  Items concatenated(int axis) {
    std::vector<Value> parts, sizes;
    for (int k = 0; k < call_.count(); ++k) {
      if (call_.bounded(k) && call_.item(k).bounded_axis != axis) call_.refuse_two_sizes();
      parts.push_back(call_.buffer(k));
      sizes.push_back(call_.true_size(k, axis));
    }
    return {joined(call_, parts, sizes, axis)};
  }

  ImportCall& call_;
  const Rule& run_;
  const bool elementwise_;
  std::vector<int> bounded_;  // operands
};

}  // namespace

Items carried(ImportCall& call, const std::function<Items(ImportCall&)>& run, bool elementwise) {
  return Carrier(call, run, elementwise).result();
}

bool falls(const ImportCall& call, int k) {
  return call.node.op_type == "Neg" || (call.node.op_type == "Sub" && k == 1);
}

bool grows(ImportCall& call) {
  static const Names every = {"Add", "Concat", "Max", "Min", "Mul", "Neg", "Sub"};
  // Their other inputs say what is taken, or how.
  static const Names first = {"Cast",      "Div",        "Gather",    "Identity", "ReduceMax",
                              "ReduceMin", "ReduceProd", "ReduceSum", "Relu",     "Reshape",
                              "Slice",     "Squeeze",    "Unsqueeze"};
  const std::string& op = call.node.op_type;
  if (!call.node.domain.empty()) return false;
  if (every.contains(op) || (op == "Where" && call.known(0))) return true;
  if (!first.contains(op)) return false;
  for (int k = 1; k < call.count(); ++k)
    if (call.given(k) && !call.known(k)) return false;
  if (op != "Div") return true;
  const Array& by = *call.known(1);
  for (int64_t i = 0; i < by.count(); ++i)
    if (by.at(i) <= 0) return false;
  return true;
}

}  // namespace millrace::onnx
