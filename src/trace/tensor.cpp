#include <atomic>
#include <string>

#include <millrace/tensor.h>

#include "base/format.h"
#include "trace/compiled_segment.h"
#include "trace/linearise.h"
#include "trace/node.h"
#include "trace/recorder.h"

namespace millrace {
namespace {

thread_local std::string layer;
thread_local std::string target = "cpu";

struct Random {
  Tensor key;  // undefined in eager code
  int64_t stream = 0, uses = 0;
  uint64_t seed = 0;
};
thread_local Random random_state;

const TensorNode& known(const std::shared_ptr<TensorNode>& node) {
  if (!node) fail<TypeError>("a tensor that was never given a value is used");
  return *node;
}

[[noreturn]] void not_known(const TensorNode& symbol, const std::source_location& where) {
  fail<TypeError>(
      "{}: the host reads a value that depends on '{}', which is only known when the graph runs (or, a "
      "parameter, after initialise())",
      trace::place(where), symbol.name);
}

/// Outside of recordings.
void compute(std::span<const Tensor> tensors) {
  const trace::Linear linear = trace::linearise(tensors);
  if (linear.shared.empty()) return;
  for (const Tensor& leaf : linear.leaves)
    if (leaf.is_symbol()) not_known(*leaf.node(), linear.shared.back()->source);
  std::vector<trace::Slot> outputs;
  for (const TensorNode* node : linear.shared)
    for (size_t r = 0; r < node->types.size(); ++r) outputs.push_back({node, static_cast<int>(r)});
  std::vector<Array> inputs;
  for (const Tensor& leaf : linear.leaves) inputs.push_back(leaf.node()->values[leaf.output()]);
  const std::vector<Array> results = trace::find_compiled(linear, outputs, target)->run(inputs);
  size_t next = 0;
  for (TensorNode* node : linear.shared) {
    const size_t count = node->types.size();
    node->settle({results.begin() + next, results.begin() + next + count});
    next += count;
  }
}

void read(const Tensor& tensor, trace::ReadKind kind, const std::source_location& where) {
  const TensorNode& node = known(tensor.node());
  if (node.is_symbol()) not_known(node, where);
  if (trace::Recorder* const recorder = trace::current_recorder())
    recorder->read(tensor, kind, where);
  else
    compute(std::span(&tensor, 1));
}

Array value_of(const Tensor& tensor) {
  const TensorNode& node = *tensor.node();
  return node.is_constant() ? node.attributes.get<Array>("value") : node.values[tensor.output()];
}

void check_single(const Tensor& tensor, const std::source_location& where) {
  if (tensor.shape().is_static() && tensor.shape().count() != 1)
    fail<TypeError>("{}: a tensor of type {} is read as one number; reduce it first", trace::place(where),
                    tensor.type().str());
}

}  // namespace

namespace trace {

const std::string& current_layer() { return layer; }

LayerScope::LayerScope(const std::string& name) : outer_(layer) {
  if (!name.empty()) layer = layer.empty() ? name : layer + "." + name;
}

LayerScope::~LayerScope() { layer = std::move(outer_); }

RandomScope::RandomScope(Tensor key) : outer_(random_state.key), outer_stream_(random_state.stream) {
  random_state.key = std::move(key);
  random_state.stream = 0;
}

RandomScope::~RandomScope() {
  random_state.key = std::move(outer_);
  random_state.stream = outer_stream_;
}

std::string place(const std::source_location& where) {
  if (where.line() == 0) return "an unknown line";
  const std::string_view file = where.file_name();
  return fmt::format("{}:{}", file.substr(file.rfind('/') + 1), where.line());
}

}  // namespace trace

TensorNode::~TensorNode() {
  std::vector<Tensor> rest = std::move(operands);
  while (!rest.empty()) {
    const Tensor last = std::move(rest.back());
    rest.pop_back();
    if (last.node().use_count() != 1) continue;
    for (Tensor& operand : last.node()->operands) rest.push_back(std::move(operand));
    last.node()->operands.clear();
  }
}

bool TensorNode::is_constant() const { return op && op->op_class == OpClass::constant; }

void TensorNode::settle(std::vector<Array> results) {
  values = std::move(results);
  op = nullptr;
  attributes = {};
  body = nullptr;
  // Handed to a node that dies here, whose destructor takes long chains apart without recursion.
  TensorNode remains;
  remains.operands = std::move(operands);
  operands.clear();
}

Tensor::Tensor(Array value) : node_(std::make_shared<TensorNode>()) {
  if (value.empty() && value.type().shape.count() > 0)
    fail<TypeError>("an array without memory is no tensor");
  node_->types = {value.type()};
  node_->values = {std::move(value)};
}

Tensor Tensor::symbol(std::string name, Type type) {
  if (const std::string fault = type.fault(); !fault.empty()) fail<TypeError>("'{}': {}", name, fault);
  auto node = std::make_shared<TensorNode>();
  node->types = {std::move(type)};
  node->name = std::move(name);
  return Tensor(std::move(node));
}

Tensor Tensor::full(const Shape& shape, double value, DType dtype, std::source_location where) {
  const Tensor scalar = apply("constant", {}, {{"value", Array::scalar(dtype, value)}}, where)[0];
  return shape.rank() == 0 ? scalar : broadcast_to({scalar, where}, shape);
}

Tensor Tensor::of(const Shape& shape, std::initializer_list<double> values, DType dtype) {
  if (shape.count() != static_cast<int64_t>(values.size()))
    fail<TypeError>("{} values are given for shape {}", values.size(), shape.str());
  return Array::of(dtype, shape, std::span(values.begin(), values.size()));
}

const Type& Tensor::type() const { return known(node_).types[output_]; }

const Dim& Tensor::dim(int axis) const {
  const int at = axis < 0 ? axis + rank() : axis;
  if (at < 0 || at >= rank()) fail<TypeError>("there is no dimension {} in {}", axis, type().str());
  return shape()[at];
}

bool Tensor::is_concrete() const { return node_ && (node_->is_constant() || !node_->values.empty()); }
bool Tensor::is_symbol() const { return node_ && node_->is_symbol(); }

Array Tensor::to_array(std::source_location where) const {
  read(*this, trace::ReadKind::array, where);
  return value_of(*this);
}

HostScalar Tensor::item(std::source_location where) const {
  known(node_);
  check_single(*this, where);
  return HostScalar(*this, where);
}

Tensor::operator bool() const {
  const std::source_location& where = known(node_).source;
  check_single(*this, where);
  read(*this, trace::ReadKind::truth, where);
  return value_of(*this).at(0) != 0;
}

HostScalar::operator double() const {
  read(value_, value_.dtype().is_bool() ? trace::ReadKind::truth : trace::ReadKind::number, where_);
  return value_of(value_).at(0);
}

void evaluate(std::span<const Tensor> tensors, std::source_location where) {
  if (trace::current_recorder())
    for (const Tensor& tensor : tensors) tensor.to_array(where);
  else
    compute(tensors);
}

void set_default_target(std::string name) {
  if (name != "cpu" && name != "ref") fail<InputError>("there is no target '{}'; have cpu, ref", name);
  target = std::move(name);
}

const std::string& default_target() { return target; }

RandomKey next_random_key() {
  if (random_state.key.defined()) return {random_state.key, random_state.stream++};
  // The count is a value, not an attribute: the next use runs the same compiled graph.
  Array key(i64, {2});
  key.as<int64_t>()[0] = static_cast<int64_t>(random_state.seed);
  key.as<int64_t>()[1] = random_state.uses++;
  return {Tensor(std::move(key)), 0};
}

void manual_seed(uint64_t seed) {
  random_state.seed = seed;
  random_state.uses = 0;
}

std::vector<Tensor> apply(std::string_view name, std::span<const Tensor> operands, Attributes attributes,
                          std::source_location where) {
  return trace::record(get_operator(name), operands, std::move(attributes), nullptr, where);
}

namespace {
std::atomic<uint64_t> operations{0};
}

uint64_t trace::recorded() { return operations.load(); }

std::vector<Tensor> trace::record(const Operator& op, std::span<const Tensor> operands, Attributes attributes,
                                  std::shared_ptr<const Graph> body, const std::source_location& where) {
  auto node = std::make_shared<TensorNode>();
  node->origin = layer.empty() ? trace::place(where) : layer;
  node->origin.call = layer.empty();
  node->source = where;
  complete_attributes(op, attributes, node->origin);
  std::vector<Type> types;
  for (const Tensor& operand : operands) {
    if (!operand.defined())
      fail<TypeError>("{}: operand {} of {} has no value", node->origin.layer.str(), types.size(), op.name);
    types.push_back(operand.type());
  }
  const TypeContext context{op, types, attributes, node->origin, body.get()};
  const int given = static_cast<int>(operands.size());
  if (given < op.min_operands || (op.max_operands >= 0 && given > op.max_operands))
    context.error(fmt::format("{} operands given, {} expected", given, op.min_operands));
  node->types = op.types(context);
  for (const Type& type : node->types)
    if (const std::string fault = type.fault(); !fault.empty()) context.error(fault);
  node->op = &op;
  node->number = ++operations;
  node->operands.assign(operands.begin(), operands.end());
  node->attributes = std::move(attributes);
  node->body = std::move(body);
  std::vector<Tensor> results;
  for (size_t r = 0; r < node->types.size(); ++r) results.emplace_back(node, static_cast<int>(r));
  return results;
}

}  // namespace millrace
