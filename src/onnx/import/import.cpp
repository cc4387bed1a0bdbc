#include "onnx/import/import.h"

#include <algorithm>
#include <set>

#include <millrace/error.h>
#include <millrace/operator.h>

#include "backend/ref/evaluate.h"
#include "base/format.h"
#include "base/suggest.h"
#include "onnx/import/call.h"
#include "onnx/import/control.h"

namespace millrace::onnx {
namespace {

/// Constants that are computed while importing are no larger than this many elements: larger ones are left to
/// the program, which computes them faster.
constexpr int64_t kFolded = int64_t{1} << 24;

/// Element-wise operators whose declared counterpart is the same function, by its name in ONNX.
const std::map<std::string_view, const Operator*>& same_functions() {
  static const std::map<std::string_view, const Operator*> known = [] {
    std::map<std::string_view, const Operator*> found;
    for (const Operator* op : all_operators())
      if (op->op_class == OpClass::elementwise && op->onnx.size() == 1 && op->attributes.empty() &&
          !op->onnx_rule)
        found.emplace(op->onnx[0], op);
    return found;
  }();
  return known;
}

const Operator* same_function(std::string_view name) {
  const auto found = same_functions().find(name);
  return found == same_functions().end() ? nullptr : found->second;
}

std::string full_name(const NodeProto& node) {
  return node.domain.empty() ? node.op_type : node.domain + "." + node.op_type;
}

/// Which node, for messages.
std::string told(const NodeProto& node) {
  if (!node.name.empty()) return fmt::format("the node '{}' ({})", node.name, full_name(node));
  if (!node.outputs.empty())
    return fmt::format("the node that gives '{}' ({})", node.outputs[0], full_name(node));
  return fmt::format("a node ({})", full_name(node));
}

class Importer : public NestedGraphs {
 public:
  Importer(const Model& model, const ImportOptions& options) : model_(model), options_(options) {}

  Imported run() {
    Scope scope{{}, nullptr, &model_.opsets, nullptr};
    initialise(model_.graph, scope);
    for (const ValueInfo& input : model_.graph.inputs) add_input(input, scope);
    for (const auto& [name, type] : options_.inputs) require_input(name);
    for (const auto& [name, array] : options_.known) require_input(name);
    run_nodes(model_.graph.nodes, scope);
    std::vector<Value> outputs;
    std::vector<std::string> names;
    for (const ValueInfo& output : model_.graph.outputs) {
      outputs.push_back(find(output.name, scope, "an output of the model"));
      names.push_back(output.name);
    }
    result_.graph.set_outputs(std::move(outputs), std::move(names));
    return std::move(result_);
  }

  std::vector<Value> inline_nested(const GraphProto& nested, std::span<const Value> arguments) override {
    Scope scope{{}, scope_, scope_->opsets, scope_->attributes};
    if (nested.inputs.size() < arguments.size())
      fail<InputError>("its graph takes {} values, not {}", nested.inputs.size(), arguments.size());
    for (size_t i = 0; i < arguments.size(); ++i) scope.values[nested.inputs[i].name] = arguments[i];
    initialise(nested, scope);
    run_nodes(nested.nodes, scope);
    std::vector<Value> results;
    for (const ValueInfo& output : nested.outputs)
      results.push_back(find(output.name, scope, "a result of its graph"));
    return results;
  }

 private:
  /// Names that may be read; those of an outer graph, too.
  struct Scope {
    std::map<std::string, Value> values;
    const Scope* outer;
    const std::map<std::string, int64_t>* opsets;
    const NodeProto* attributes;  // of a function's nodes: the call, whose attributes they may refer to
  };

  void initialise(const GraphProto& graph, Scope& scope) {
    if (graph.has_sparse)
      fail<InputError>("the graph '{}' has sparse initialisers; make them dense", graph.name);
    for (const TensorProto& tensor : graph.initialisers) {
      if (&graph == &model_.graph &&
          (options_.inputs.contains(tensor.name) || options_.known.contains(tensor.name)))
        continue;
      const Value value = result_.graph.constant(array_of(tensor, model_.folder));
      scope.values[tensor.name] = value;
      if (scope.outer == nullptr) result_.weights.emplace_back(tensor.name, value);
    }
  }

  void require_input(const std::string& name) const {
    std::vector<std::string> names;
    for (const ValueInfo& input : model_.graph.inputs) names.push_back(input.name);
    if (std::find(names.begin(), names.end(), name) == names.end())
      fail<InputError>("the model has no input '{}'{} ({})", name, did_you_mean(name, names),
                       fmt::join(names, ", "));
  }

  void add_input(const ValueInfo& input, Scope& scope) {
    if (scope.values.contains(input.name)) return;  // an initialiser
    if (const auto known = options_.known.find(input.name); known != options_.known.end()) {
      scope.values[input.name] = result_.graph.constant(known->second);
      return;
    }
    scope.values[input.name] = result_.graph.input(input.name, type_of(input));
  }

  Type type_of(const ValueInfo& input) const {
    if (const auto given = options_.inputs.find(input.name); given != options_.inputs.end())
      return given->second;
    if (!input.is_tensor)
      fail<InputError>("the input '{}' is no tensor, and only tensors are taken", input.name);
    const std::optional<DType> dtype = dtype_of(input.data_type);
    if (!dtype)
      fail<InputError>("the input '{}' is of {}, which Millrace does not compute with", input.name,
                       data_type_name(input.data_type));
    Type type{*dtype, {}};
    if (!input.has_shape)
      fail<InputError>("the model does not say the shape of its input '{}': give it", input.name);
    for (const ValueInfo::Dimension& dim : input.shape) {
      if (dim.size < 0)
        fail<InputError>("the model does not say how large {} of its input '{}' is: give its shape",
                         dim.name.empty() ? "a dimension" : fmt::format("'{}'", dim.name), input.name);
      type.shape.emplace_back(dim.size);
    }
    return type;
  }

  Value find(const std::string& name, const Scope& scope, const char* what) const {
    for (const Scope* at = &scope; at; at = at->outer)
      if (const auto found = at->values.find(name); found != at->values.end()) return found->second;
    fail<InputError>(
        "'{}', {}, is given by no node before (nodes must be in an order in which they can be computed)",
        name, what);
  }

  void run_nodes(const std::vector<NodeProto>& nodes, Scope& scope) {
    const Scope* const before = scope_;
    scope_ = &scope;
    for (const NodeProto& node : nodes) run_node(node, scope);
    scope_ = before;
  }

  void run_node(const NodeProto& node, Scope& scope) {
    try {
      const NodeProto own = with_attributes(node, scope);
      std::vector<Value> operands;
      for (const std::string& name : node.inputs)
        operands.push_back(name.empty() ? Value{} : find(name, scope, "an input"));
      const std::vector<Value> results = call(own, std::move(operands), scope);
      for (size_t i = 0; i < node.outputs.size(); ++i) {
        if (node.outputs[i].empty()) continue;
        if (i >= results.size() || !results[i].valid())
          fail<InputError>("its output {} ('{}') cannot be had", i, node.outputs[i]);
        scope.values[node.outputs[i]] = results[i];
      }
    } catch (const NodeError&) {
      throw;
    } catch (const Error& e) {
      throw NodeError(fmt::format("{}: {}", told(node), e.what()));
    }
  }

  /// An error that says its node already.
  struct NodeError : InputError {
    using InputError::InputError;
  };

  /// Of a function's node: attributes that refer to the call's have its values.
  NodeProto with_attributes(const NodeProto& node, const Scope& scope) const {
    NodeProto own = node;
    if (!scope.attributes) return own;
    std::erase_if(own.attributes, [&](AttributeProto& each) {
      if (each.refers_to.empty()) return false;
      const AttributeProto* given = scope.attributes->find(each.refers_to);
      if (!given) return true;
      const std::string name = each.name;
      each = *given;
      each.name = name;
      return false;
    });
    return own;
  }

  std::vector<Value> call(const NodeProto& node, std::vector<Value> operands, const Scope& scope) {
    if (const FunctionProto* function = find_function(node))
      return inline_function(*function, node, operands);
    const std::string name = full_name(node);
    const ImportRule* rule = find_import_rule(name);
    const Operator* same = rule ? nullptr : same_function(name);
    if (!rule && !same)
      fail<InputError>("Millrace does not know this operator{}", did_you_mean(name, imported_operators()));
    const auto version = scope.opsets->find(node.domain);
    const int64_t opset = version == scope.opsets->end() ? 1 : version->second;
    const auto write = [&](Graph& graph, std::vector<Value> values) {
      graph.set_location(node.name.empty() && !node.outputs.empty() ? node.outputs[0] : node.name);
      ImportCall one(node, opset, graph, std::move(values), model_.folder, *this);
      return rule ? rule->run(one) : element_wise(one, *same);
    };
    if (all_known(operands) && !takes_graphs(node)) return folded(operands, write);
    return write(result_.graph, std::move(operands));
  }

  static std::vector<Value> element_wise(ImportCall& call, const Operator& op) {
    std::vector<Value> operands;
    Shape to = call.count() > 0 ? call.shape(0) : Shape{};
    for (int k = 1; k < call.count(); ++k) to = broadcast_shapes(to, call.shape(k));
    for (int k = 0; k < call.count(); ++k) operands.push_back(call.b.broadcast(call[k], to));
    return {call.graph.add(op, std::move(operands))};
  }

  bool all_known(const std::vector<Value>& operands) const {
    return std::all_of(operands.begin(), operands.end(), [&](Value value) {
      const Array* array = value.valid() ? result_.graph.constant_value(value) : nullptr;
      return !value.valid() || (array && array->count() <= kFolded);
    });
  }
  static bool takes_graphs(const NodeProto& node) {
    return std::any_of(node.attributes.begin(), node.attributes.end(),
                       [](const AttributeProto& each) { return each.graph != nullptr; });
  }

  /// What a rule gives of operands that are known: computed now.
  template <typename Write>
  std::vector<Value> folded(const std::vector<Value>& operands, const Write& write) {
    Graph scratch;
    std::vector<Value> copies;
    for (const Value value : operands)
      copies.push_back(value.valid() ? scratch.constant(*result_.graph.constant_value(value)) : Value{});
    const std::vector<Value> results = write(scratch, std::move(copies));
    std::vector<Value> outputs;
    for (const Value value : results)
      if (value.valid()) outputs.push_back(value);
    scratch.set_outputs(outputs);
    const std::vector<Array> arrays = ref::evaluate(scratch, {});
    std::vector<Value> constants;
    size_t at = 0;
    for (const Value value : results)
      constants.push_back(value.valid() ? result_.graph.constant(arrays[at++]) : Value{});
    return constants;
  }

  const FunctionProto* find_function(const NodeProto& node) const {
    for (const FunctionProto& each : model_.functions)
      if (each.name == node.op_type && each.domain == node.domain && each.overload == node.overload)
        return &each;
    return nullptr;
  }

  std::vector<Value> inline_function(const FunctionProto& function, const NodeProto& node,
                                     const std::vector<Value>& operands) {
    if (++depth_ > 64) fail<InputError>("functions call each other more than 64 deep");
    NodeProto with_defaults = node;
    for (const AttributeProto& each : function.defaults)
      if (!with_defaults.find(each.name)) with_defaults.attributes.push_back(each);
    Scope scope{{}, nullptr, &function.opsets, &with_defaults};
    for (size_t i = 0; i < function.inputs.size(); ++i)
      scope.values[function.inputs[i]] = i < operands.size() ? operands[i] : Value{};
    run_nodes(function.nodes, scope);
    std::vector<Value> results;
    for (const std::string& name : function.outputs)
      results.push_back(find(name, scope, "a result of the function"));
    --depth_;
    return results;
  }

  const Model& model_;
  const ImportOptions& options_;
  Imported result_;
  const Scope* scope_ = nullptr;
  int depth_ = 0;
};

}  // namespace

Imported import_model(const Model& model, const ImportOptions& options) {
  return Importer(model, options).run();
}

std::vector<std::string> imported_operators() {
  std::vector<std::string> names = import_rule_names();
  for (const auto& [name, op] : same_functions()) names.emplace_back(name);
  return names;
}

}  // namespace millrace::onnx
