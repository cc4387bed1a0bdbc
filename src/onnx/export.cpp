#include "onnx/export.h"

#include <cmath>
#include <functional>
#include <set>

#include <millrace/operator.h>

#include "base/format.h"
#include "onnx/writer.h"
#include "ops/scan.h"

namespace millrace::onnx {
namespace {

/// One node on its way out: the names of its operands and what its rule needs to know.
struct Call {
  GraphWriter& writer;
  const Node& node;
  std::vector<std::string> operands;
  std::vector<Type> types;   // of the operands
  std::vector<bool> wanted;  // which results are read
  const Attributes& attributes() const { return node.attributes; }
  std::string scalar(double value) const { return writer.constant(Array::scalar(types[0].dtype, value)); }
};
using Rule = std::function<std::vector<std::string>(const Call&)>;

std::vector<std::string> one(std::string name) { return {std::move(name)}; }

// ---- rules ---------------------------------------------------------------------------------------------------------

std::vector<std::string> cast_rule(const Call& c) {
  return one(c.writer.node("Cast", c.operands, {{"to", int64_t{data_type(c.attributes().dtype("dtype"))}}}));
}

std::vector<std::string> clamp_rule(const Call& c) {
  const double low = c.attributes().number("low"), high = c.attributes().number("high");
  return one(c.writer.node("Clip", {c.operands[0], std::isfinite(low) ? c.scalar(low) : "",
                                    std::isfinite(high) ? c.scalar(high) : ""}));
}

std::vector<std::string> reshape_rule(const Call& c) {
  const Shape& shape = c.attributes().shape("shape");
  std::vector<int64_t> sizes;
  int named = 0;
  bool empty = false;
  for (const Dim& dim : shape) {
    named += !dim.is_static();
    empty |= dim.is_static() && dim.size() == 0;
    sizes.push_back(dim.is_static() ? dim.size() : -1);
  }
  const std::string target = named == 1 && !empty ? c.writer.ints(sizes) : c.writer.shape_of(shape);
  return one(c.writer.node("Reshape", {c.operands[0], target}, {{"allowzero", int64_t{empty}}}));
}

std::vector<std::string> transpose_rule(const Call& c) {
  return one(c.writer.node("Transpose", c.operands, {{"perm", c.attributes().ints("permutation")}}));
}

/// The axes of a reduction, all when none are given.
std::vector<int64_t> axes_of(const Call& c) {
  std::vector<int64_t> axes = c.attributes().ints("axes");
  if (axes.empty())
    for (int axis = 0; axis < c.types[0].shape.rank(); ++axis) axes.push_back(axis);
  return axes;
}

Rule reduce_rule(const std::string& type) {
  return [type](const Call& c) {
    const int64_t keep = c.attributes().flag("keep_dims");
    const std::vector<int64_t> axes = axes_of(c);
    if (axes.empty()) return one(c.writer.node("Identity", c.operands));
    if (type == "ReduceSum" || c.writer.opset() >= 18)
      return one(c.writer.node(type, {c.operands[0], c.writer.ints(axes)}, {{"keepdims", keep}}));
    return one(c.writer.node(type, c.operands, {{"axes", axes}, {"keepdims", keep}}));
  };
}

Rule arg_rule(const std::string& type) {
  return [type](const Call& c) {
    return one(
        c.writer.node(type, c.operands,
                      {{"axis", axes_of(c)[0]}, {"keepdims", int64_t{c.attributes().flag("keep_dims")}}}));
  };
}

std::vector<std::string> matmul_rule(const Call& c) {
  std::vector<std::string> operands = c.operands;
  const bool flags[] = {c.attributes().flag("transpose_a"), c.attributes().flag("transpose_b")};
  if (c.types[0].shape.rank() == 2 && c.types[1].shape.rank() == 2)
    return one(
        c.writer.node("Gemm", operands, {{"transA", int64_t{flags[0]}}, {"transB", int64_t{flags[1]}}}));
  for (int i = 0; i < 2; ++i) {
    if (!flags[i]) continue;
    std::vector<int64_t> swapped(c.types[i].shape.size());
    for (size_t axis = 0; axis < swapped.size(); ++axis) swapped[axis] = static_cast<int64_t>(axis);
    std::swap(swapped[swapped.size() - 1], swapped[swapped.size() - 2]);
    operands[i] = c.writer.node("Transpose", {operands[i]}, {{"perm", swapped}});
  }
  return one(c.writer.node("MatMul", operands));
}

std::vector<std::string> conv_rule(const Call& c) {
  return one(c.writer.node("Conv", c.operands,
                           {{"strides", c.attributes().ints("strides")},
                            {"pads", c.attributes().ints("pads")},
                            {"dilations", c.attributes().ints("dilations")},
                            {"group", c.attributes().integer("groups")}}));
}

/// The gradient of a convolution with respect to its input: a transposed convolution whose output padding fills the rows
/// and columns that a stride leaves over.
std::vector<std::string> conv_transpose_rule(const Call& c) {
  const auto &strides = c.attributes().ints("strides"), &pads = c.attributes().ints("pads"),
             &dilations = c.attributes().ints("dilations");
  const Shape &result = c.node.types[0].shape, &from = c.types[0].shape, &window = c.types[1].shape;
  std::vector<int64_t> extra;
  for (int d = 0; d < 2; ++d)
    extra.push_back(result[d + 2].size() -
                    ((from[d + 2].size() - 1) * strides[d] + (window[d + 2].size() - 1) * dilations[d] + 1 -
                     pads[d] - pads[d + 2]));
  return one(c.writer.node("ConvTranspose", c.operands,
                           {{"strides", strides},
                            {"pads", pads},
                            {"dilations", dilations},
                            {"output_padding", extra},
                            {"group", c.attributes().integer("groups")}}));
}

/// A constant: ONNX's Range counts in one dimension only.
std::vector<std::string> iota_rule(const Call& c) {
  const Type& type = c.node.types[0];
  if (!type.shape.is_static())
    fail<InputError>("iota of shape {} cannot be exported: its sizes must be numbers", type.shape.str());
  const int rank = type.shape.rank();
  const int64_t axis = c.attributes().integer("axis");
  const size_t counted = static_cast<size_t>(axis < 0 ? axis + rank : axis);
  int64_t inner = 1;
  for (size_t d = counted + 1; d < type.shape.size(); ++d) inner *= type.shape[d].size();
  Array values(type);
  for (int64_t i = 0; i < values.count(); ++i)
    values.set(i, static_cast<double>(i / inner % type.shape[counted].size()));
  return one(c.writer.constant(values));
}

OnnxAttributes pool_attributes(const Call& c) {
  OnnxAttributes attributes{{"kernel_shape", c.attributes().ints("kernel")},
                            {"strides", c.attributes().ints("strides")},
                            {"pads", c.attributes().ints("pads")}};
  if (c.attributes().find("dilations"))
    attributes.emplace_back("dilations", c.attributes().ints("dilations"));
  return attributes;
}

std::vector<std::string> max_pool_rule(const Call& c) {
  return one(c.writer.node("MaxPool", c.operands, pool_attributes(c)));
}

std::vector<std::string> average_pool_rule(const Call& c) {
  OnnxAttributes attributes = pool_attributes(c);
  std::erase_if(attributes,
                [](const auto& item) { return item.first == "dilations"; });  // not before opset 19
  attributes.emplace_back("count_include_pad", int64_t{c.attributes().flag("count_include_pad")});
  return one(c.writer.node("AveragePool", c.operands, attributes));
}

std::vector<std::string> concat_rule(const Call& c) {
  return one(c.writer.node("Concat", c.operands, {{"axis", c.attributes().integer("axis")}}));
}

Rule softmax_rule(const std::string& type) {
  return [type](const Call& c) -> std::vector<std::string> {
    const Attribute* zero_empty = c.attributes().find("zero_empty");
    if (zero_empty && std::get<bool>(*zero_empty)) return {};
    return one(c.writer.node(type, c.operands, {{"axis", c.attributes().integer("axis")}}));
  };
}

Rule alpha_rule(const std::string& type) {
  return [type](const Call& c) {
    const auto alpha = static_cast<float>(c.attributes().number("alpha"));
    return one(c.writer.node(type, c.operands, {{"alpha", alpha}}));
  };
}

Rule same_rule(const std::string& type) {
  return [type](const Call& c) { return one(c.writer.node(type, c.operands)); };
}

std::vector<std::string> gather_rule(const Call& c) {
  const auto* axis = c.attributes().find("axis");
  return one(c.writer.node("Gather", c.operands, {{"axis", axis ? std::get<int64_t>(*axis) : int64_t{0}}}));
}

std::vector<std::string> slice_rule(const Call& c) {
  const std::vector<int64_t>&starts = c.attributes().ints("starts"), &ends = c.attributes().ints("ends");
  if (starts.empty()) return one(c.writer.node("Identity", c.operands));
  std::vector<int64_t> axes, steps = c.attributes().ints("steps");
  for (size_t axis = 0; axis < starts.size(); ++axis) axes.push_back(static_cast<int64_t>(axis));
  steps.resize(starts.size(), 1);
  return one(c.writer.node("Slice", {c.operands[0], c.writer.ints(starts), c.writer.ints(ends),
                                     c.writer.ints(axes), c.writer.ints(steps)}));
}

/// The same filter: antialiased, what lies outside left out. ONNX does not say how it is rounded; ONNX Runtime's results
/// differ by at most 1.
std::vector<std::string> resize_rule(const Call& c) {
  const Shape& from = c.types[0].shape;
  const int rank = from.rank();
  const std::vector<int64_t> sizes{c.attributes().integer("height"), c.attributes().integer("width")};
  const OnnxAttributes attributes{{"mode", "linear"},
                                  {"antialias", int64_t{1}},
                                  {"exclude_outside", int64_t{1}},
                                  {"coordinate_transformation_mode", "half_pixel"},
                                  {"axes", std::vector<int64_t>{2, 3}}};
  const auto resized = [&](const std::string& x) {
    return c.writer.node("Resize", {x, "", "", c.writer.ints(sizes)}, attributes);
  };
  if (rank == 4) return one(resized(c.operands[0]));
  // Runtimes do it for four dimensions.
  const std::string four = c.writer.node(
      "Reshape", {c.operands[0], c.writer.ints({1, -1, from[rank - 2].size(), from[rank - 1].size()})});
  return one(c.writer.node("Reshape", {resized(four), c.writer.shape_of(c.node.types[0].shape)}));
}

/// Rules of operators that differ from their ONNX counterpart by more than a name. One that returns nothing leaves the
/// node to its body.
const std::map<std::string_view, Rule>& rules() {
  static const std::map<std::string_view, Rule> table = {
      {"cast", cast_rule},
      {"clamp", clamp_rule},
      {"reshape", reshape_rule},
      {"transpose", transpose_rule},
      {"sum", reduce_rule("ReduceSum")},
      {"mean", reduce_rule("ReduceMean")},
      {"max", reduce_rule("ReduceMax")},
      {"min", reduce_rule("ReduceMin")},
      {"argmax", arg_rule("ArgMax")},
      {"argmin", arg_rule("ArgMin")},
      {"matmul", matmul_rule},
      {"conv2d", conv_rule},
      {"conv2d_input_grad", conv_transpose_rule},
      {"max_pool2d", max_pool_rule},  // positions count otherwise there: only the values
      {"max_pool2d_values", max_pool_rule},
      {"avg_pool2d", average_pool_rule},
      {"concat", concat_rule},
      {"gather", gather_rule},
      {"slice", slice_rule},
      {"resize", resize_rule},
      {"softmax", softmax_rule("Softmax")},
      {"log_softmax", softmax_rule("LogSoftmax")},
      {"elu", alpha_rule("Elu")},
      {"leaky_relu", alpha_rule("LeakyRelu")},
      {"softplus", same_rule("Softplus")},
      {"hardswish", same_rule("HardSwish")},
      {"stop_gradient", same_rule("Identity")},
      {"rsqrt",
       [](const Call& c) { return one(c.writer.node("Reciprocal", {c.writer.node("Sqrt", c.operands)})); }},
      {"square",
       [](const Call& c) {
         return one(c.writer.node("Mul", {c.operands[0], c.operands[0]}));
       }},
      {"iota", iota_rule},
      {"not_equal",
       [](const Call& c) { return one(c.writer.node("Not", {c.writer.node("Equal", c.operands)})); }},
  };
  return table;
}

// ---- the walk ------------------------------------------------------------------------------------------------------

/// Writes one graph (the model's, or a composite's body). A broadcast is written only where ONNX's own implicit
/// broadcasting does not do it.
class Walk {
 public:
  Walk(GraphWriter& writer, const Graph& graph, const std::vector<std::string>& inputs)
      : Walk(writer, graph, inputs, std::vector<bool>(graph.outputs().size(), true)) {}
  /// Writes only what the wanted outputs need.
  Walk(GraphWriter& writer, const Graph& graph, const std::vector<std::string>& inputs,
       std::vector<bool> wanted)
      : writer_(writer), graph_(graph), wanted_(std::move(wanted)) {
    for (size_t i = 0; i < graph.inputs().size(); ++i) names_[graph.inputs()[i]] = inputs[i];
  }

  std::vector<std::string> run() {
    mark_needed();
    for (int i = 0; i < graph_.size(); ++i)
      if (needed_[i]) visit(i);
    std::vector<std::string> results;
    for (size_t i = 0; i < wanted_.size(); ++i)
      results.push_back(wanted_[i] ? full(graph_.outputs()[i]) : std::string());
    return results;
  }

 private:
  void mark_needed() {
    needed_.assign(graph_.size(), false);
    const auto need = [&](Value value) {
      needed_[value.node] = true;
      read_.insert(value);
    };
    for (size_t i = 0; i < wanted_.size(); ++i)
      if (wanted_[i]) need(graph_.outputs()[i]);
    for (int i = graph_.size() - 1; i >= 0; --i)
      if (needed_[i])
        for (const Value operand : graph_.node(i).operands) need(operand);
  }

  /// The name of a value in its full shape.
  std::string full(Value value) {
    const auto lazy = lazy_.find(value);
    if (lazy == lazy_.end()) return names_.at(value);
    const std::string name =
        writer_.node("Expand", {lazy->second, writer_.shape_of(graph_.type(value).shape)});
    lazy_.erase(lazy);
    return names_[value] = name;
  }

  void visit(int index) {
    const Node& node = graph_.node(index);
    const Value result{index, 0};
    if (graph_.is_input(result)) return;
    if (const Array* constant = graph_.constant_value(result)) {
      names_[result] = writer_.constant(*constant);
      return;
    }
    if (!node.location.empty()) writer_.set_location(node.location.layer);
    if (node.op->name == "broadcast") {
      const auto inner = lazy_.find(node.operands[0]);
      lazy_[result] = inner == lazy_.end() ? names_.at(node.operands[0]) : inner->second;
      return;
    }

    Call call{writer_, node, {}, {}, {}};
    for (size_t r = 0; r < node.types.size(); ++r)
      call.wanted.push_back(read_.contains({index, static_cast<int32_t>(r)}));
    bool has_full = false;
    for (const Value operand : node.operands) has_full |= !lazy_.contains(operand);
    const bool implicit = node.op->op_class == OpClass::elementwise && has_full;
    for (const Value operand : node.operands) {
      const auto lazy = lazy_.find(operand);
      call.operands.push_back(implicit && lazy != lazy_.end() ? lazy->second : full(operand));
      call.types.push_back(graph_.type(operand));
    }
    const std::vector<std::string> results = write(call);
    for (size_t i = 0; i < results.size(); ++i) names_[{index, static_cast<int32_t>(i)}] = results[i];
  }

  std::vector<std::string> write(const Call& call) {
    const Node& node = call.node;
    if (const auto rule = rules().find(node.op->name); rule != rules().end())
      if (const auto results = rule->second(call); !results.empty()) return results;
    if (node.op->op_class == OpClass::elementwise && !node.op->onnx.empty() && node.op->attributes.empty())
      return one(writer_.node(std::string(node.op->onnx[0]), call.operands));
    if (node.op->op_class == OpClass::loop) return scan(call);
    if (node.body) return Walk(writer_, *node.body, call.operands, call.wanted).run();
    fail<InputError>("the operator {}{} has no counterpart in ONNX", node.op->name,
                     node.location.empty() ? "" : fmt::format(" (of {})", node.location.str()));
  }

  /// ONNX's Scan; its body reads invariants by their outer names.
  std::vector<std::string> scan(const Call& call) {
    const Node& node = call.node;
    const ops::Scan s = ops::scan_of(node);
    if (s.sequences == 0)
      fail<InputError>("a loop over nothing but a number of steps{} has no counterpart in ONNX",
                       node.location.empty() ? "" : fmt::format(" (of {})", node.location.str()));
    const auto looped = static_cast<size_t>(s.carries + s.sequences);
    GraphWriter inner = writer_.inner();
    std::vector<std::string> inputs;
    for (size_t k = 0; k < call.operands.size(); ++k) {
      inputs.push_back(k < looped ? inner.fresh("x") : call.operands[k]);
      if (k < looped) inner.input(inputs[k], node.body->type(node.body->inputs()[k]));
    }
    const std::vector<std::string> results = Walk(inner, *node.body, inputs).run();
    for (size_t r = 0; r < results.size(); ++r) {
      const std::string name = inner.fresh("y");
      inner.named_node("Identity", {results[r]}, name);
      inner.output(name, node.body->type(node.body->outputs()[r]));
    }
    const int64_t direction = s.reverse ? 1 : 0;
    return writer_.nodes("Scan",
                         {call.operands.begin(), call.operands.begin() + static_cast<int64_t>(looped)},
                         static_cast<int>(results.size()),
                         {{"body", OnnxGraph{inner.finish("step")}},
                          {"num_scan_inputs", int64_t{s.sequences}},
                          {"scan_input_directions", std::vector<int64_t>(s.sequences, direction)},
                          {"scan_output_directions", std::vector<int64_t>(s.outputs, direction)}});
  }

  GraphWriter& writer_;
  const Graph& graph_;
  std::vector<bool> wanted_;  // of the outputs
  std::vector<bool> needed_;  // nodes
  std::set<Value> read_;
  std::map<Value, std::string> names_;
  std::map<Value, std::string> lazy_;  // broadcasts not written: the name of what is broadcast
};

bool resizes(const Graph& graph) {
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(i);
    if (node.op->name == "resize" || (node.body && resizes(*node.body))) return true;
  }
  return false;
}

}  // namespace

std::string export_model(const Graph& graph, const ExportOptions& options) {
  GraphWriter writer(resizes(graph) ? 18 : 17);  // antialias came with 18
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const auto weight = options.weights.find(static_cast<int>(i));
    if (weight == options.weights.end())
      writer.input(graph.input_names()[i], graph.type(graph.inputs()[i]));
    else
      writer.weight(graph.input_names()[i], weight->second);
  }
  const std::vector<std::string> results = Walk(writer, graph, graph.input_names()).run();
  for (size_t i = 0; i < results.size(); ++i) {
    writer.named_node("Identity", {results[i]}, graph.output_names()[i]);
    writer.output(graph.output_names()[i], graph.type(graph.outputs()[i]));
  }

  WireWriter model;
  model.varint(1, 8).bytes(2, "millrace").message(7, writer.finish(options.name));
  model.message(8, WireWriter().bytes(1, "").varint(2, static_cast<uint64_t>(writer.opset())));
  for (const auto& [key, value] : options.metadata)
    model.message(14, WireWriter().bytes(1, key).bytes(2, value));
  if (model.text().size() >= (uint64_t{1} << 31))
    fail<InputError>("the model is larger than ONNX's limit of 2 GB");
  return model.text();
}

}  // namespace millrace::onnx
