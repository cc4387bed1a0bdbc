#include "onnx/export.h"

#include <algorithm>
#include <set>

#include <millrace/narrow_types.h>
#include <millrace/operator.h>
#include <millrace/tensor.h>

#include "base/format.h"
#include "onnx/writer.h"
#include "ops/body.h"
#include "ops/scan.h"

namespace millrace::onnx {
namespace {

/// Writes one graph (the model's, or a composite's body). A broadcast is written only where ONNX's own
/// implicit broadcasting does not do it.
class Walk {
 public:
  /// `wanted`: of the outputs; only what they need is written. Empty: all of them.
  Walk(GraphWriter& writer, const Graph& graph, const std::vector<std::string>& inputs,
       std::vector<bool> wanted = {})
      : writer_(writer), graph_(graph), wanted_(std::move(wanted)) {
    if (wanted_.empty()) wanted_.assign(graph.outputs().size(), true);
    for (size_t i = 0; i < graph.inputs().size(); ++i) names_[graph.inputs()[i]] = inputs[i];
  }

  /// What an input holds.
  void know(Value input, const Array& array) { known_[input] = &array; }

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
    std::vector<Value> outputs;
    for (size_t i = 0; i < wanted_.size(); ++i)
      if (wanted_[i]) outputs.push_back(graph_.outputs()[i]);
    needed_ = ops::needed_by(graph_, outputs);
    read_.insert(outputs.begin(), outputs.end());
    for (int i = 0; i < graph_.size(); ++i)
      if (needed_[i]) read_.insert(graph_.node(i).operands.begin(), graph_.node(i).operands.end());
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
    if (!node.origin.empty()) writer_.set_location(node.origin.layer);
    if (node.op->broadcasts) {
      const auto inner = lazy_.find(node.operands[0]);
      lazy_[result] = inner == lazy_.end() ? names_.at(node.operands[0]) : inner->second;
      return;
    }

    OnnxCall call{writer_, graph_, node, {}, {}, {}, {}};
    for (size_t r = 0; r < node.types.size(); ++r)
      call.wanted.push_back(read_.contains({index, static_cast<int32_t>(r)}));
    bool has_full = false;
    for (const Value operand : node.operands) has_full |= !lazy_.contains(operand);
    const bool implicit = node.op->op_class == OpClass::elementwise && has_full;
    for (const Value operand : node.operands) {
      const auto lazy = lazy_.find(operand);
      call.operands.push_back(implicit && lazy != lazy_.end() ? lazy->second : full(operand));
      call.types.push_back(graph_.type(operand));
      const auto known = known_.find(operand);
      call.values.push_back(known == known_.end() ? graph_.constant_value(operand) : known->second);
    }
    const std::vector<std::string> results = write(call);
    for (size_t i = 0; i < results.size(); ++i) names_[{index, static_cast<int32_t>(i)}] = results[i];
  }

  std::vector<std::string> write(const OnnxCall& call) {
    const Node& node = call.node;
    if (node.op->onnx_rule)
      if (const auto results = node.op->onnx_rule(call); !results.empty()) return results;
    if (node.op->op_class == OpClass::elementwise && !node.op->onnx.empty() && node.op->attributes.empty())
      return call.one(std::string(node.op->onnx[0]), call.operands);
    if (node.op->op_class == OpClass::loop) return loop(call);
    if (node.op->op_class == OpClass::branch) return branches(call);
    if (node.body) return Walk(writer_, *node.body, call.operands, call.wanted).run();
    fail<InputError>("{}the operator {}{} has no counterpart in ONNX",
                     node.op->random ? "random numbers: " : "", node.op->name,
                     node.origin.empty() ? "" : fmt::format(" (of {})", node.origin.str()));
  }

  /// ONNX's Scan where there are sequences, else its Loop. The body reads invariants by their outer names.
  std::vector<std::string> loop(const OnnxCall& call) {
    const Node& node = call.node;
    const ops::Scan s = ops::scan_of(node);
    const bool scan = s.sequences > 0;
    if (!scan && s.reverse && s.outputs > 0)
      fail<InputError>("a loop that stacks backwards without a sequence{} has no counterpart in ONNX",
                       node.origin.empty() ? "" : fmt::format(" (of {})", node.origin.str()));
    const auto looped = static_cast<size_t>(s.carries + s.sequences);
    GraphWriter inner = writer_.inner();
    std::string going;
    if (!scan) {
      inner.input(inner.fresh("step"), {i64, {}});
      going = inner.fresh("going");
      inner.input(going, {boolean, {}});
    }
    std::vector<std::string> inputs;
    for (size_t k = 0; k < call.operands.size(); ++k) {
      inputs.push_back(k < looped ? inner.fresh("x") : call.operands[k]);
      if (k < looped) inner.input(inputs[k], node.body->type(node.body->inputs()[k]));
    }
    const std::vector<std::string> results = Walk(inner, *node.body, inputs).run();
    if (!scan) give(inner, s.conditional ? results[0] : going, {boolean, {}});
    for (size_t r = 0; r < results.size(); ++r)
      give(inner, results[r], node.body->type(node.body->outputs()[r]));
    std::vector<std::string> operands(call.operands.begin(),
                                      call.operands.begin() + static_cast<int64_t>(looped));
    OnnxAttributes attributes;
    if (scan) {
      const int64_t direction = s.reverse ? 1 : 0;
      attributes = {{"num_scan_inputs", int64_t{s.sequences}},
                    {"scan_input_directions", std::vector<int64_t>(s.sequences, direction)},
                    {"scan_output_directions", std::vector<int64_t>(s.outputs, direction)}};
    } else {
      operands.insert(operands.begin(), {most(s), s.conditional ? call.operands[0] : ""});
    }
    std::vector<std::string> names =
        writer_.nodes(scan ? "Scan" : "Loop", operands, static_cast<int>(results.size()), attributes,
                      {{"body", inner.finish("step")}});
    for (int r = s.carries; s.conditional && r < s.carries + s.outputs; ++r)
      if (call.wanted[r]) names[r] = with_zeros(names[r], node.types[r].shape);
    return names;
  }

  /// Of ONNX's Loop: the most steps; empty where there is no limit.
  std::string most(const ops::Scan& s) {
    if (s.length == Dim(no_limit)) return "";
    return writer_.constant(Array::scalar(i64, static_cast<double>(s.length.size())));
  }

  static void give(GraphWriter& graph, const std::string& value, const Type& type) {
    const std::string name = graph.fresh("y");
    graph.named_node("Identity", {value}, name);
    graph.output(name, type);
  }

  /// What a Loop stacked, with zeros for the steps that were not run, up to `shape`.
  std::string with_zeros(const std::string& stack, const Shape& shape) {
    const std::string size =
        writer_.node("Slice", {writer_.node("Shape", {stack}), writer_.ints({0}), writer_.ints({1})});
    const std::string missing = writer_.node("Sub", {writer_.ints({shape[0].size()}), size});
    const std::string before = writer_.ints(std::vector<int64_t>(shape.size(), 0));
    std::vector<std::string> pads = {before, missing};
    if (shape.rank() > 1) pads.push_back(writer_.ints(std::vector<int64_t>(shape.size() - 1, 0)));
    return writer_.node("Pad", {stack, writer_.node("Concat", pads, {{"axis", int64_t{0}}})});
  }

  /// ONNX's If; its branches read the operands by their outer names.
  std::vector<std::string> branches(const OnnxCall& call) {
    const Graph& body = *call.node.body;
    const size_t results = call.node.types.size();
    OnnxGraphs graphs;
    for (const bool first : {true, false}) {
      std::vector<bool> wanted(2 * results, !first);
      std::fill_n(wanted.begin(), results, first);
      GraphWriter inner = writer_.inner();
      const std::vector<std::string> names =
          Walk(inner, body, {call.operands.begin() + 1, call.operands.end()}, wanted).run();
      for (size_t r = 0; r < results; ++r) give(inner, names[first ? r : results + r], call.node.types[r]);
      const std::string name = first ? "then_branch" : "else_branch";
      graphs.emplace_back(name, inner.finish(name));
    }
    return writer_.nodes("If", {call.operands[0]}, static_cast<int>(results), {}, graphs);
  }

  GraphWriter& writer_;
  const Graph& graph_;
  std::vector<bool> wanted_;  // of the outputs
  std::vector<char> needed_;  // nodes
  std::set<Value> read_;
  std::map<Value, std::string> names_;
  std::map<Value, const Array*> known_;
  std::map<Value, std::string> lazy_;  // broadcasts not written: the name of what is broadcast
};

/// The version of ONNX's operators that knows a dtype.
int opset_of(DType dtype) {
  if (dtype.bits == 2) return 25;
  if (dtype == f8e8m0) return 24;
  if (dtype == f4e2m1) return 23;
  if (dtype.bits == 4) return 21;
  return is_narrow_float(dtype) ? 19 : 0;
}

/// The version of the format that came with a version of the operators.
uint64_t ir_version_of(int opset) {
  if (opset < 15) return 7;
  if (opset < 19) return 8;
  if (opset < 21) return 9;
  return opset < 23 ? 10 : static_cast<uint64_t>(opset - 12);
}

constexpr int usual_opset = 17;

/// The version of ONNX's operators that a graph needs where it needs a newer one than is usual, and what for.
struct Needed {
  int opset = usual_opset;
  std::string what;
};
Needed needed_by(const Graph& graph) {
  Needed needed;
  const auto raise = [&](int opset, const std::string& what) {
    if (opset > needed.opset) needed = {opset, what};
  };
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(i);
    for (const Type& type : node.types) raise(opset_of(type.dtype), "the type " + type.dtype.name());
    raise(node.op->onnx_opset, fmt::format("the operator {}", node.op->name));
    if (!node.body) continue;
    const Needed inner = needed_by(*node.body);
    raise(inner.opset, inner.what);
  }
  return needed;
}

/// The version of ONNX's operators that all of a graph's are written in.
int opset_for(const Graph& graph, int wanted) {
  if (wanted != 0 && (wanted < oldest_opset || wanted > newest_opset))
    fail<InputError>("models are written in opsets {} to {}, not {}", oldest_opset, newest_opset, wanted);
  const Needed needed = needed_by(graph);
  if (wanted == 0) return needed.opset;
  if (needed.opset > usual_opset && needed.opset > wanted)
    fail<InputError>("{} needs opset {}, and {} is asked for", needed.what, needed.opset, wanted);
  return wanted;
}

/// Declares the inputs of texts that stand for a graph's input and returns the name of the ids that they
/// become.
std::string encode_texts(GraphWriter& writer, const std::vector<TextInput>& texts, const Type& ids) {
  MILLRACE_CHECK(
      ids.dtype == i64 && ids.shape.rank() == 2 && ids.shape[1] == static_cast<int64_t>(texts.size()),
      "{} columns of texts do not make {}", texts.size(), ids.str());
  std::vector<std::string> columns;
  for (const TextInput& text : texts) {
    writer.text_input(text.name, {ids.shape[0], 1});
    columns.push_back(writer.text_ids(text.name, text.ids));
  }
  return columns.size() == 1 ? columns[0] : writer.node("Concat", columns, {{"axis", int64_t{1}}});
}

}  // namespace

std::string export_model(const Graph& graph, const ExportOptions& options) {
  GraphWriter writer(opset_for(graph, options.opset));
  std::vector<std::string> names = graph.input_names();
  for (const std::string& name : names) writer.take(name);
  for (const std::string& name : graph.output_names()) writer.take(name);
  for (const auto& [at, texts] : options.texts)
    for (const TextInput& text : texts) writer.take(text.name);
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const auto weight = options.weights.find(static_cast<int>(i));
    const auto texts = options.texts.find(static_cast<int>(i));
    const Type& type = graph.type(graph.inputs()[i]);
    if (weight != options.weights.end())
      writer.weight(names[i], weight->second);
    else if (texts != options.texts.end())
      names[i] = encode_texts(writer, texts->second, type);
    else
      writer.input(names[i], type);
  }
  Walk walk(writer, graph, names);
  for (const auto& [at, array] : options.weights) walk.know(graph.inputs()[static_cast<size_t>(at)], array);
  const std::vector<std::string> results = walk.run();
  for (size_t i = 0; i < results.size(); ++i) {
    writer.named_node("Identity", {results[i]}, graph.output_names()[i]);
    writer.output(graph.output_names()[i], graph.type(graph.outputs()[i]));
  }

  WireWriter model;
  model.varint(1, ir_version_of(writer.opset())).bytes(2, "millrace").message(7, writer.finish(options.name));
  model.message(8, WireWriter().bytes(1, "").varint(2, static_cast<uint64_t>(writer.opset())));
  if (writer.learns_otherwise()) model.message(8, WireWriter().bytes(1, "ai.onnx.ml").varint(2, 2));
  for (const auto& [key, value] : options.metadata)
    model.message(14, WireWriter().bytes(1, key).bytes(2, value));
  if (model.text().size() >= (uint64_t{1} << 31))
    fail<InputError>("the model is larger than ONNX's limit of 2 GB");
  return model.text();
}

}  // namespace millrace::onnx
