#include <algorithm>

#include <millrace/graph.h>
#include <millrace/narrow_types.h>
#include <millrace/operator.h>

#include "base/format.h"
#include "base/suggest.h"
#include "ir/values.h"

namespace millrace {
namespace {

std::string types_text(std::span<const Type> types) {
  std::string text;
  for (const Type& type : types) text += (text.empty() ? "" : ", ") + type.str();
  return text;
}

std::string in_layer(const Origin& origin) {
  return origin.empty() ? "" : fmt::format(" (in layer '{}')", origin.str());
}

/// Types of operands; TypeError when one is not a value of the graph.
std::vector<Type> operand_types(const Graph& graph, const Operator& op, std::span<const Value> operands) {
  std::vector<Type> types;
  for (const Value& operand : operands) {
    if (!graph.has(operand))
      fail<TypeError>("{}: operand {} is not a value of this graph{}", op.name, types.size(),
                      in_layer(graph.origin()));
    types.push_back(graph.type(operand));
  }
  return types;
}

/// What follows "attribute 'axis' of sum" where it cannot be that; empty where it can.
std::string attribute_fault(const AttributeSpec& spec, const Attribute& value) {
  if (const std::string fault = spec.fault(value); !fault.empty()) return " " + fault;
  const Shape* shape = std::get_if<Shape>(&value);
  const std::string fault = shape ? Type{u8, *shape}.fault() : "";
  return fault.empty() ? "" : ": " + fault;
}

}  // namespace

void complete_attributes(const Operator& op, Attributes& attributes, const Origin& origin) {
  if (!op.types) fail<TypeError>("{} needs a body{}", op.name, in_layer(origin));
  std::vector<std::string> names;
  for (const AttributeSpec& spec : op.attributes) {
    const Attribute* given = attributes.find(spec.name);
    if (!given && !spec.fallback)
      fail<TypeError>("{} needs the attribute '{}'{}", op.name, spec.name, in_layer(origin));
    if (!given)
      attributes.set(std::string(spec.name), *spec.fallback);
    else if (const std::string fault = attribute_fault(spec, *given); !fault.empty())
      fail<TypeError>("attribute '{}' of {}{}{}", spec.name, op.name, fault, in_layer(origin));
  }
  if (attributes.items().size() == op.attributes.size()) return;
  for (const AttributeSpec& spec : op.attributes) names.emplace_back(spec.name);
  for (const auto& item : attributes.items())
    if (std::find(names.begin(), names.end(), item.first) == names.end())
      fail<TypeError>("{} has no attribute '{}'{}{}", op.name, item.first,
                      near(item.first, names).empty()
                          ? ""
                          : fmt::format("; the nearest is '{}'", near(item.first, names)),
                      in_layer(origin));
}

void TypeContext::error(const std::string& what) const {
  fail<TypeError>("{}({}): {}{}", op.name, types_text(operands), what, in_layer(origin));
}

std::string_view phase_name(Phase phase) {
  switch (phase) {
    case Phase::forward:
      return "forward";
    case Phase::backward:
      return "backward";
    case Phase::update:
      return "update";
  }
  return "";
}

const std::string& SharedName::str() const {
  static const std::string none;
  return text_ ? *text_ : none;
}

const std::vector<Type>& ResultTypes::list() const {
  static const std::vector<Type> none;
  return types_ ? *types_ : none;
}

std::string Origin::str() const {
  if (phase == Phase::forward) return place();
  return fmt::format("{}{}({})", place(), layer.empty() ? "" : " ", phase_name(phase));
}

Value Graph::append(Node node) {
  nodes_.push_back(std::make_shared<Node>(std::move(node)));
  return {size() - 1, 0};
}

Value Graph::input(std::string name, Type type) {
  static const Operator& op = get_operator("input");
  Node node;
  if (const std::string fault = type.fault(); !fault.empty()) fail<TypeError>("input '{}': {}", name, fault);
  node.op = &op;
  node.types = std::vector<Type>{std::move(type)};
  const Value value = append(std::move(node));
  inputs_.push_back(value);
  input_names_.push_back(std::move(name));
  return value;
}

Value Graph::constant(Array value) {
  static const Operator& op = get_operator("constant");
  return add(op, {}, {{"value", std::move(value)}});
}

namespace {

/// Whether each dimension, from the last on, is the result's or one.
bool spreads_to(const Shape& shape, const Shape& result) {
  if (shape.rank() > result.rank()) return false;
  for (int d = 1; d <= shape.rank(); ++d)
    if (shape[shape.rank() - d] != 1 && shape[shape.rank() - d] != result[result.rank() - d]) return false;
  return true;
}

std::vector<Type> result_types(const TypeContext& context) {
  std::vector<Type> types = context.op.types(context);
  if (types.empty()) context.error("its type rule gives no result");
  if (context.op.op_class == OpClass::elementwise)
    for (const Type& operand : context.operands)
      if (!spreads_to(operand.shape, types[0].shape))
        context.error(fmt::format("its type rule gives {}, to which {} is not broadcast", types[0].str(),
                                  operand.str()));
  for (const Type& type : types)
    if (const std::string fault = type.fault(); !fault.empty()) context.error(fault);
  return types;
}

/// Type rules that take any float, or any integer, mean common ones: of rare ones those that a sample has.
bool has_sample(const Operator& op, DType dtype) {
  return std::any_of(op.samples.begin(), op.samples.end(), [&](const Sample& sample) {
    return std::any_of(sample.operands.begin(), sample.operands.end(),
                       [&](const Type& type) { return type.dtype == dtype; });
  });
}

}  // namespace

Value Graph::add(std::string_view op, std::vector<Value> operands, Attributes attributes) {
  return add(get_operator(op), std::move(operands), std::move(attributes));
}

Value Graph::add(const Operator& op, std::vector<Value> operands, Attributes attributes) {
  if (op.runs_body()) fail<TypeError>("{} needs a body{}", op.name, in_layer(origin_));
  complete_attributes(op, attributes, origin_);
  const std::vector<Type> given_types = operand_types(*this, op, operands);
  const TypeContext context{op, given_types, attributes, origin_};
  const int given = static_cast<int>(operands.size());
  if (given < op.min_operands || (op.max_operands >= 0 && given > op.max_operands))
    context.error(fmt::format("{} operands given, {} expected", given, op.min_operands));
  for (const Type& type : given_types)
    if (is_rare(type.dtype) && !has_sample(op, type.dtype)) context.error("dtype is not supported");
  Node node;
  node.op = &op;
  node.types = result_types(context);
  if (op.body) {
    auto body = std::make_shared<Graph>();
    body->set_origin(origin_);
    std::vector<Value> arguments;
    for (int i = 0; i < given; ++i) arguments.push_back(body->input(fmt::format("x{}", i), given_types[i]));
    body->set_outputs(op.body(*body, arguments, attributes));
    for (size_t i = 0; i < body->outputs().size(); ++i)
      MILLRACE_CHECK(body->type(body->outputs()[i]) == node.types[i], "body of {} gives {}, its type rule {}",
                     op.name, body->type(body->outputs()[i]).str(), node.types[i].str());
    node.body = std::move(body);
  }
  node.operands = std::move(operands);
  node.attributes = std::move(attributes);
  node.origin = origin_;
  return append(std::move(node));
}

Value Graph::add_with_body(const Operator& op, std::vector<Value> operands, Attributes attributes,
                           std::shared_ptr<const Graph> body) {
  if (!op.takes_body()) fail<TypeError>("{} takes no body", op.name);
  if (!body) fail<TypeError>("{} needs a body", op.name);
  const std::vector<Type> given_types = operand_types(*this, op, operands);
  Node node;
  node.op = &op;
  if (op.runs_body()) {
    complete_attributes(op, attributes, origin_);
    node.types = result_types({op, given_types, attributes, origin_, body.get()});
  } else {
    if (given_types != types_of(*body, body->inputs()))
      fail<TypeError>("the inputs of the body are not those of {}{}", op.name, in_layer(origin_));
    node.types = types_of(*body, body->outputs());
  }
  node.operands = std::move(operands);
  node.attributes = std::move(attributes);
  node.body = std::move(body);
  node.origin = origin_;
  return append(std::move(node));
}

Value Graph::add_copy(const Graph& from, int index, std::vector<Value> operands) {
  const Node& node = from.node(index);
  const auto fits = [&](Value here, Value there) { return has(here) && type(here) == from.type(there); };
  if (node.op->op_class != OpClass::input &&
      std::equal(operands.begin(), operands.end(), node.operands.begin(), node.operands.end(), fits)) {
    if (operands == node.operands && origin_ == node.origin && origin_.call == node.origin.call) {
      nodes_.push_back(from.nodes_[index]);
      return {size() - 1, 0};
    }
    return append({node.op, std::move(operands), node.attributes, node.types, node.body, origin_});
  }
  return node.op->takes_body() ? add_with_body(*node.op, std::move(operands), node.attributes, node.body)
                               : add(*node.op, std::move(operands), node.attributes);
}

bool Graph::has(Value value) const {
  return value.node >= 0 && value.node < size() && value.output >= 0 &&
         value.output < static_cast<int>(node(value).types.size());
}

void Graph::set_outputs(std::vector<Value> outputs, std::vector<std::string> names) {
  for (size_t i = 0; i < outputs.size(); ++i)
    if (!has(outputs[i])) fail<TypeError>("output {} is not a value of this graph", i);
  if (names.size() > outputs.size())
    fail<TypeError>("{} names are given for {} outputs", names.size(), outputs.size());
  outputs_ = std::move(outputs);
  output_names_ = std::move(names);
  for (size_t i = output_names_.size(); i < outputs_.size(); ++i)
    output_names_.push_back(fmt::format("y{}", i));
}

const Array* Graph::constant_value(Value value) const {
  const Node& n = node(value);
  return n.op->op_class == OpClass::constant ? &n.attributes.get<Array>("value") : nullptr;
}

void Graph::drop_elements(int constant) {
  auto changed = std::make_shared<Node>(node(constant));
  changed->attributes.set("value", Array(changed->types[0], nullptr, nullptr));
  nodes_[constant] = std::move(changed);
}

bool Graph::is_input(Value value) const { return node(value).op->op_class == OpClass::input; }

std::vector<int> Graph::use_counts() const {
  std::vector<int> counts(nodes_.size());
  for (const auto& node : nodes_)
    for (const Value& operand : node->operands) ++counts[operand.node];
  for (const Value& output : outputs_) ++counts[output.node];
  return counts;
}

void Graph::verify() const {
  for (int i = 0; i < size(); ++i) {
    const Node& n = node(i);
    MILLRACE_CHECK(n.op != nullptr, "node {} has no operator", i);
    for (const Value& operand : n.operands) {
      MILLRACE_CHECK(operand.node >= 0 && operand.node < i, "node {} ({}) uses a later value", i, n.op->name);
      MILLRACE_CHECK(has(operand), "node {} ({}) uses result {} of {}", i, n.op->name, operand.output,
                     node(operand).op->name);
    }
    const std::vector<Type> operand_types = types_of(*this, n.operands);
    if (n.op->types) {
      for (const AttributeSpec& spec : n.op->attributes) {
        const Attribute* given = n.attributes.find(spec.name);
        MILLRACE_CHECK(given, "node {} ({}) lacks the attribute '{}'", i, n.op->name, spec.name);
        const std::string fault = attribute_fault(spec, *given);
        MILLRACE_CHECK(fault.empty(), "node {} ({}): attribute '{}'{}", i, n.op->name, spec.name, fault);
      }
      MILLRACE_CHECK(n.attributes.items().size() == n.op->attributes.size(),
                     "node {} ({}) has attributes that its operator does not declare", i, n.op->name);
      const std::vector<Type> types =
          n.op->types(TypeContext{*n.op, operand_types, n.attributes, n.origin, n.body.get()});
      MILLRACE_CHECK(types == n.types, "node {} ({}) has types {}, its rule gives {}", i, n.op->name,
                     types_text(n.types), types_text(types));
    }
    if (!n.body) continue;
    n.body->verify();
    if (n.op->runs_body()) continue;  // its type rule knows the body
    MILLRACE_CHECK(n.body->inputs().size() == n.operands.size() && n.body->outputs().size() == n.types.size(),
                   "node {} ({}) and its body differ in operands or results", i, n.op->name);
    for (size_t k = 0; k < n.operands.size(); ++k)
      MILLRACE_CHECK(n.body->type(n.body->inputs()[k]) == operand_types[k],
                     "node {} ({}): type of body input {}", i, n.op->name, k);
    for (size_t k = 0; k < n.types.size(); ++k)
      MILLRACE_CHECK(n.body->type(n.body->outputs()[k]) == n.types[k], "node {} ({}): type of body output {}",
                     i, n.op->name, k);
  }
  for (const Value& output : outputs_) MILLRACE_CHECK(has(output), "an output is not in the graph");
}

bool Graph::operator==(const Graph& other) const {
  if (inputs_ != other.inputs_ || outputs_ != other.outputs_ || input_names_ != other.input_names_ ||
      output_names_ != other.output_names_ || nodes_.size() != other.nodes_.size())
    return false;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const Node &a = *nodes_[i], &b = *other.nodes_[i];
    if (a.op != b.op || a.operands != b.operands || a.types != b.types || !(a.attributes == b.attributes) ||
        a.origin != b.origin || !a.body != !b.body || (a.body && !(*a.body == *b.body)))
      return false;
  }
  return true;
}

Rewriter::Rewriter(const Graph& from) : from_(from) {
  first_.reserve(static_cast<size_t>(from.size()) + 1);
  int results = 0;
  for (int i = 0; i < from.size(); ++i) {
    first_.push_back(results);
    results += static_cast<int>(from.node(i).types.size());
  }
  first_.push_back(results);
  map_.resize(static_cast<size_t>(results));
}

void Rewriter::copy_inputs() {
  for (size_t i = 0; i < from_.inputs().size(); ++i)
    set(from_.inputs()[i], to_.input(from_.input_names()[i], from_.type(from_.inputs()[i])));
}

void Rewriter::copy(int index, const Bindings* bindings) {
  const Node& node = from_.node(index);
  to_.set_origin(node.origin);
  std::vector<Value> operands = mapped(node.operands);
  if (!bindings) return set_all(index, to_.add_copy(from_, index, std::move(operands)));
  Attributes attributes = node.attributes;
  for (const auto& [name, value] : node.attributes.items())
    if (const Shape* shape = std::get_if<Shape>(&value)) attributes.set(name, shape->specialise(*bindings));
  set_all(index, node.op->takes_body()
                     ? to_.add_with_body(*node.op, std::move(operands), std::move(attributes),
                                         std::make_shared<const Graph>(specialise(*node.body, *bindings)))
                     : to_.add(*node.op, std::move(operands), std::move(attributes)));
}

void Rewriter::set_all(int index, Value first) {
  for (int32_t r = 0; r < static_cast<int32_t>(from_.node(index).types.size()); ++r)
    set({index, r}, {first.node, r});
}

void Rewriter::go_through(const std::function<bool(int index)>& changed) {
  copy_inputs();
  for (int i = 0; i < from_.size(); ++i)
    if (!has({i, 0}) && !changed(i)) copy(i);
}

void Rewriter::set(Value old_value, Value new_value) {
  MILLRACE_CHECK(from_.has(old_value) && to_.has(new_value), "value {}.{} is mapped to {}.{}", old_value.node,
                 old_value.output, new_value.node, new_value.output);
  map_[first_[old_value.node] + old_value.output] = new_value;
}

bool Rewriter::has(Value old_value) const {
  const int place = first_[old_value.node] + old_value.output;
  return place < first_[old_value.node + 1] && map_[place].valid();
}

Value Rewriter::operator[](Value old_value) const {
  MILLRACE_CHECK(has(old_value), "value {}.{} ({}) is not mapped", old_value.node, old_value.output,
                 from_.node(old_value).op->name);
  return map_[first_[old_value.node] + old_value.output];
}

std::vector<Value> Rewriter::mapped(std::span<const Value> old_values) const {
  std::vector<Value> out;
  out.reserve(old_values.size());
  for (const Value& value : old_values) out.push_back((*this)[value]);
  return out;
}

Graph Rewriter::finish() {
  to_.set_origin("");
  to_.set_outputs(mapped(from_.outputs()), from_.output_names());
  return std::move(to_);
}

std::vector<Value> inline_graph(Graph& into, const Graph& part, std::span<const Value> arguments) {
  if (arguments.size() != part.inputs().size())
    fail<TypeError>("{} arguments are given for a graph of {} inputs", arguments.size(),
                    part.inputs().size());
  std::vector<std::vector<Value>> map(part.size());
  for (size_t i = 0; i < part.inputs().size(); ++i) map[part.inputs()[i].node] = {arguments[i]};
  const Origin outer = into.origin();
  for (int i = 0; i < part.size(); ++i) {
    if (!map[i].empty()) continue;
    const Node& node = part.node(i);
    std::vector<Value> operands;
    for (const Value& operand : node.operands) operands.push_back(map[operand.node][operand.output]);
    into.set_origin(node.origin.empty() ? outer : node.origin);
    const Value added = into.add_copy(part, i, std::move(operands));
    for (size_t r = 0; r < node.types.size(); ++r) map[i].push_back({added.node, static_cast<int32_t>(r)});
  }
  into.set_origin(outer);
  std::vector<Value> results;
  for (const Value& output : part.outputs()) results.push_back(map[output.node][output.output]);
  return results;
}

namespace {

bool all_static(const Graph& graph) {
  const auto is_static = [](const Type& type) { return type.shape.is_static(); };
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(i);
    if (!std::all_of(node.types.begin(), node.types.end(), is_static)) return false;
    for (const auto& [name, value] : node.attributes.items())
      if (const Shape* shape = std::get_if<Shape>(&value); shape && !shape->is_static()) return false;
    if (node.body && !all_static(*node.body)) return false;
  }
  return true;
}

}  // namespace

Graph specialise(const Graph& graph, const Bindings& bindings) {
  for (const auto& [name, size] : bindings)
    if (size < 0) fail<TypeError>("dimension '{}' is bound to {}; a size is at least 0", name, size);
  if (all_static(graph)) return graph;
  Rewriter rewrite(graph);
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    Type type = graph.type(graph.inputs()[i]);
    type.shape = type.shape.specialise(bindings);
    if (!type.shape.is_static())
      fail<TypeError>("input '{}' has shape {}: bind its named dimensions to numbers", graph.input_names()[i],
                      type.shape.str());
    rewrite.set(graph.inputs()[i], rewrite.graph().input(graph.input_names()[i], type));
  }
  for (int i = 0; i < graph.size(); ++i)
    if (!rewrite.has({i, 0})) rewrite.copy(i, &bindings);
  return rewrite.finish();
}

}  // namespace millrace
