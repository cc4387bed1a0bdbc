#include "onnx/import/import.h"

#include <algorithm>
#include <optional>
#include <set>

#include <millrace/error.h>
#include <millrace/operator.h>

#include "base/format.h"
#include "base/suggest.h"
#include "onnx/import/bounded.h"
#include "onnx/import/call.h"
#include "onnx/import/control.h"
#include "onnx/import/folded.h"
#include "onnx/import/ranks.h"
#include "onnx/import/size_decisions.h"

namespace millrace::onnx {
namespace {

/// Loops that are written step after step, in each other, could fill all memory.
constexpr int kMostNodes = 1 << 19;
/// Functions that call each other, too.
constexpr int64_t kMostRun = int64_t{1} << 22;

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

/// Operators of ONNX that are imported: "Conv", "ai.onnx.ml.Scaler".
std::vector<std::string> imported_operators() {
  std::vector<std::string> names = import_rule_names();
  for (const auto& [name, op] : same_functions()) names.emplace_back(name);
  return names;
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
    Scope scope{{}, nullptr, &model_.opsets, nullptr, 0};
    if (options_.learning) return run_learning(scope);
    initialise(model_.graph, scope);
    for (const ValueInfo& input : model_.graph.inputs) add_input(input, scope);
    for (const auto& [name, type] : options_.inputs) require_input(name);
    run_nodes(model_.graph.nodes, scope);
    Outputs outputs;
    for (const ValueInfo& output : model_.graph.outputs) {
      result_.outputs.push_back(find(output.name, scope, "an output of the model"));
      outputs.add(result_.outputs.back(), output.name);
    }
    result_.graph.set_outputs(std::move(outputs.values), std::move(outputs.names));
    return std::move(result_);
  }

  Item look_up(const std::string& name) override { return find(name, *scope_, "which the node names"); }

  Items inline_nested(const GraphProto& nested, std::span<const Item> arguments) override {
    Deeper deeper(*this, "graphs lie in each other");
    Scope scope{{}, scope_, scope_->opsets, scope_->attributes, levels_.size()};
    if (nested.inputs.size() < arguments.size())
      fail<InputError>("its graph takes {} values, not {}", nested.inputs.size(), arguments.size());
    for (size_t i = 0; i < arguments.size(); ++i) scope.values[nested.inputs[i].name] = arguments[i];
    initialise(nested, scope);
    run_nodes(nested.nodes, scope);
    Items results;
    for (const ValueInfo& output : nested.outputs)
      results.push_back(find(output.name, scope, "a result of its graph"));
    return results;
  }

  ControlBody body_of(
      std::span<const BodyArgument> arguments,
      const std::function<std::vector<Value>(Graph&, std::span<const Value>)>& write) override {
    Deeper deeper(*this, "graphs lie in each other");
    Level level;
    std::vector<std::vector<Value>> from;  // of the body's inputs
    std::vector<Value> inputs;
    for (const BodyArgument& argument : arguments) {
      inputs.push_back(level.graph.input(argument.name, argument.type));
      from.push_back(argument.from);
    }
    levels_.push_back(&level);
    const auto leave = [&] {
      levels_.pop_back();
      finished_ += level.graph.size();
      for (const Value& value : level.captured) from.push_back({value});
    };
    try {
      level.graph.set_outputs(write(level.graph, inputs));
    } catch (const UnknownInputs& e) {
      leave();
      throw UnknownInputs(e.what(), names_behind(level.graph, from, e.inputs), e.inputs_told);
    } catch (...) {
      leave();
      throw;
    }
    leave();
    return {std::make_shared<const Graph>(std::move(level.graph)), std::move(level.captured)};
  }

 private:
  /// A body that is being written.
  struct Level {
    Graph graph;
    std::map<Value, Value> entered;  // values of the graph around it
    std::vector<Value> captured;     // those that became inputs
  };

  Graph& graph() { return levels_.empty() ? result_.graph : levels_.back()->graph; }

  /// The inputs of the graph that is written now which inputs of a body come from.
  std::vector<std::string> names_behind(const Graph& body, const std::vector<std::vector<Value>>& from,
                                        const std::vector<std::string>& inputs) {
    std::vector<Value> values;
    for (size_t k = 0; k < body.inputs().size(); ++k)
      if (std::find(inputs.begin(), inputs.end(), body.input_names()[k]) != inputs.end())
        values.insert(values.end(), from[k].begin(), from[k].end());
    return inputs_behind(graph(), values);
  }

  /// A value of the graph around level `at`, in it.
  Value enter(Value outer, size_t at, const std::string& name) {
    Level& level = *levels_[at];
    const auto [known, is_new] = level.entered.try_emplace(outer);
    if (!is_new) return known->second;
    const Graph& around = at == 0 ? result_.graph : levels_[at - 1]->graph;
    const Array* constant = around.constant_value(outer);
    if (constant && (constant->count() <= kSmallConstant || !is_real(constant->dtype())))
      return known->second = level.graph.constant(*constant);
    level.captured.push_back(outer);
    return known->second = level.graph.input(name, around.type(outer));
  }

  /// An item of an outer graph, in the one that is written now.
  Item enter(Item item, size_t from, const std::string& name) {
    for (size_t at = from; at < levels_.size(); ++at) {
      if (item.form == Item::Form::tensor) item.value = enter(item.value, at, name);
      if (item.bounded_axis >= 0) item.size = enter(item.size, at, name + ".size");
    }
    if (item.items && from < levels_.size()) {
      std::vector<Item> items;
      for (size_t i = 0; i < item.items->size(); ++i)
        items.push_back(enter((*item.items)[i], from, fmt::format("{}.{}", name, i)));
      item.items = std::make_shared<const std::vector<Item>>(std::move(items));
    }
    return item;
  }

  /// Names that may be read; those of an outer graph, too.
  struct Scope {
    std::map<std::string, Item> values;
    const Scope* outer;
    const std::map<std::string, int64_t>* opsets;
    const NodeProto* attributes;  // of a function's nodes: the call, whose attributes they may refer to
    size_t level;                 // how many bodies its values lie in
  };

  /// Only what the outputs that are asked for need is read.
  Imported run_learning(Scope& scope) {
    const Learning& learning = *options_.learning;
    notes_.training = learning.training;
    needed_ = needed_for(model_.graph, learning);
    initialise(model_.graph, scope);
    if (learning.enter.empty()) {
      for (const ValueInfo& input : model_.graph.inputs)
        if (!learning.inputs.contains(input.name)) add_input(input, scope);
    } else {
      const auto given = options_.inputs.find(learning.enter);
      MILLRACE_CHECK(given != options_.inputs.end(), "the type of '{}' is not given", learning.enter);
      scope.values[learning.enter] = result_.graph.input(learning.enter, given->second);
    }
    for (const auto& [name, type] : options_.inputs)
      if (name != learning.enter) require_input(name);
    for (const TensorProto& tensor : model_.graph.initialisers)
      if (learning.inputs.contains(tensor.name) && needed_.values.contains(tensor.name))
        scope.values[tensor.name] = learnt_input(tensor);
    if (learning.training) notes_.key = result_.graph.input("random", {i64, {2}});
    run_nodes(model_.graph.nodes, scope);
    Outputs outputs;
    for (const std::string& name : learning.outputs) {
      const Item& item = find(name, scope, "at which the model is to end");
      if (item.form != Item::Form::tensor || item.bounded_axis >= 0)
        fail<InputError>("'{}' is no tensor, or of a size that depends on data", name);
      outputs.add(item.value, name);
    }
    for (const Value statistic : notes_.statistics)
      outputs.add(statistic, fmt::format("statistic.{}", outputs.values.size()));
    result_.graph.set_outputs(std::move(outputs.values), std::move(outputs.names));
    result_.norms = std::move(notes_.norms);
    result_.fixed_norms = notes_.fixed_norms;
    return std::move(result_);
  }

  /// An initialiser that is learnt, in its own dtype.
  Value learnt_input(const TensorProto& tensor) {
    const std::optional<DType> dtype = dtype_of(tensor.data_type);
    MILLRACE_CHECK(dtype && dtype->is_float(), "'{}' cannot be learnt", tensor.name);
    const Value input = result_.graph.input(tensor.name, {f32, Shape(tensor.dims)});
    return ops::Build(result_.graph).cast(input, *dtype);
  }

  void initialise(const GraphProto& from, Scope& scope) {
    const auto replaced = [&](const std::string& name) {
      if (options_.learning && &from == &model_.graph &&
          (options_.learning->inputs.contains(name) || !needed_.values.contains(name)))
        return true;
      return &from == &model_.graph && options_.inputs.contains(name);
    };
    std::set<std::string_view> names;
    for (const TensorProto& tensor : from.initialisers) {
      if (!names.insert(tensor.name).second) fail<InputError>("two initialisers are named '{}'", tensor.name);
      if (replaced(tensor.name)) continue;
      const auto read = &from == &model_.graph ? options_.read.find(tensor.name) : options_.read.end();
      if (tensor.is_text())
        scope.values[tensor.name] = Item::of(texts_of(tensor));
      else if (read != options_.read.end())
        scope.values[tensor.name] = graph().constant(read->second);
      else
        scope.values[tensor.name] = graph().constant(array_of(tensor, model_.folder, options_.files.get()));
    }
    for (const SparseTensorProto& tensor : from.sparse)
      if (!replaced(tensor.values.name))
        scope.values[tensor.values.name] = graph().constant(array_of(tensor, model_.folder));
  }

  /// What the graph has as outputs.
  struct Outputs {
    std::vector<Value> values;
    std::vector<std::string> names;

    void add(Value value, const std::string& name) {
      values.push_back(value);
      names.push_back(name);
    }
    /// All tensors of it.
    void add(const Item& item, const std::string& name) {
      if (item.form == Item::Form::tensor) add(item.value, name);
      if (item.bounded_axis >= 0) add(item.size, name + ".size");
      for (size_t i = 0; item.items && i < item.items->size(); ++i)
        add((*item.items)[i], fmt::format("{}.{}", name, i));
    }
  };

  /// Graphs within graphs and functions within functions end somewhere.
  struct Deeper {
    Deeper(Importer& importer, const char* what) : depth(importer.depth_) {
      if (++depth > 64) fail<InputError>("{} more than 64 deep", what);
    }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;
    ~Deeper() { --depth; }
    int& depth;
  };

  void require_input(const std::string& name) const {
    std::vector<std::string> names;
    for (const ValueInfo& input : model_.graph.inputs) names.push_back(input.name);
    if (std::find(names.begin(), names.end(), name) == names.end())
      fail<InputError>("the model has no input '{}'{} ({})", name, did_you_mean(name, names),
                       fmt::join(names, ", "));
  }

  void add_input(const ValueInfo& input, Scope& scope) {
    if (scope.values.contains(input.name)) return;  // an initialiser
    scope.values[input.name] = result_.graph.input(input.name, type_of(input));
  }

  Type type_of(const ValueInfo& input) const {
    if (const auto given = options_.inputs.find(input.name); given != options_.inputs.end())
      return given->second;
    if (input.form != ValueInfo::Form::tensor) fail<InputError>("the input '{}' is no tensor", input.name);
    const std::optional<DType> dtype = dtype_of(input.data_type);
    if (!dtype)
      fail<InputError>("the input '{}' is of {}, which Millrace does not compute with", input.name,
                       data_type_name(input.data_type));
    Type type{*dtype, {}};
    if (!input.has_shape)
      fail<InputError>("the model does not say the shape of its input '{}': give it", input.name);
    for (const ValueInfo::Dimension& dim : input.shape) {
      if (dim.size < 0)
        fail<InputError>("the model does not say how large '{}' of its input '{}' is: give its shape",
                         dim.name, input.name);
      type.shape.emplace_back(dim.size);
    }
    return type;
  }

  Item find(const std::string& name, const Scope& scope, const char* what) {
    for (const Scope* at = &scope; at; at = at->outer)
      if (const auto found = at->values.find(name); found != at->values.end())
        return enter(found->second, at->level, name);
    fail<InputError>(
        "'{}', {}, is given by no node before (nodes must be in an order in which they can be computed)",
        name, what);
  }

  void run_nodes(const std::vector<NodeProto>& nodes, Scope& scope) {
    struct Inside {  // a rule may go on where a body of its node could not be written
      Inside(const Scope*& at, const Scope* scope) : scope_(at), before(at) { at = scope; }
      ~Inside() { scope_ = before; }
      Inside(const Inside&) = delete;
      Inside& operator=(const Inside&) = delete;
      const Scope*& scope_;
      const Scope* before;
    } inside(scope_, &scope);
    const bool all = &nodes != &model_.graph.nodes || !options_.learning;
    for (const NodeProto& node : nodes)
      if (all || needed_.nodes.contains(&node)) run_node(node, scope);
  }

  void run_node(const NodeProto& node, Scope& scope) {
    try {
      std::optional<NodeProto> changed;
      if (scope.attributes) changed = with_attributes(node, *scope.attributes);
      Items operands;
      for (const std::string& name : node.inputs)
        operands.push_back(name.empty() ? Item{} : find(name, scope, "an input"));
      const Items results = call(changed ? *changed : node, std::move(operands), scope);
      for (size_t i = 0; i < node.outputs.size(); ++i) {
        if (node.outputs[i].empty()) continue;
        // The value where training enters the model is given. A further result that the node does not have
        // may stay out, as no other node reads it.
        if (options_.learning &&
            (node.outputs[i] == options_.learning->enter || (i > 0 && i >= results.size())))
          continue;
        if (i >= results.size() || results[i].form == Item::Form::left_out)
          fail<InputError>("its output {} ('{}') cannot be had", i, node.outputs[i]);
        if (!scope.values.emplace(node.outputs[i], results[i]).second)
          fail<InputError>("'{}' is given already: names of values must differ", node.outputs[i]);
      }
      int64_t size = result_.graph.size() + finished_;
      for (const Level* level : levels_) size += level->graph.size();
      if (size > kMostNodes || ++run_ > kMostRun)
        fail<InputError>("the graph becomes larger than {} nodes; do its loops have too many steps?",
                         kMostNodes);
    } catch (const NodeError&) {
      throw;
    } catch (const UnknownInputs& e) {
      throw UnknownInputs(e.inputs_told ? e.what() : fmt::format("{}: {}", told(node), e.what()), e.inputs,
                          true);
    } catch (const Error& e) {
      throw NodeError(fmt::format("{}: {}", told(node), e.what()));
    }
  }

  /// An error that says its node already.
  struct NodeError : InputError {
    using InputError::InputError;
  };

  /// Of a function's node: attributes that refer to those of its call have their values.
  static NodeProto with_attributes(const NodeProto& node, const NodeProto& call) {
    NodeProto own = node;
    std::erase_if(own.attributes, [&](AttributeProto& each) {
      if (each.refers_to.empty()) return false;
      const AttributeProto* given = call.find(each.refers_to);
      if (!given) return true;
      const std::string name = each.name;
      each = *given;
      each.name = name;
      return false;
    });
    return own;
  }

  Items call(const NodeProto& node, Items operands, const Scope& scope) {
    if (const FunctionProto* function = find_function(node))
      return inline_function(*function, node, operands);
    const std::string name = full_name(node);
    const ImportRule* rule = find_import_rule(name);
    const Operator* same = rule ? nullptr : same_function(name);
    if (!rule && !same)
      fail<InputError>("Millrace does not know this operator{}", did_you_mean(name, imported_operators()));
    const auto version = scope.opsets->find(node.domain);
    const int64_t opset = version == scope.opsets->end() ? 1 : version->second;
    const auto write = [&](Graph& graph, Items values) {
      graph.set_origin(node.name.empty() && !node.outputs.empty() ? node.outputs[0] : node.name);
      ImportCall one(node, opset, graph, std::move(values), model_.folder, *this,
                     !options_.learning ? nullptr
                     : levels_.empty()  ? &notes_
                                        : &in_bodies_);
      check_ranks(one);
      const auto run = [&](ImportCall& each) { return rule ? rule->run(each) : element_wise(each, *same); };
      const bool elementwise = same != nullptr;
      for (int k = 0; k < one.count(); ++k)
        if (one.bounded(k)) return carried(one, run, elementwise);
      return run(one);
    };
    if (all_known(graph(), operands) && !takes_graphs(node) && !repeats(graph(), node, operands))
      if (std::optional<Items> constants = folded(graph(), operands, write)) {
        note_decision(node, operands, *constants);
        return std::move(*constants);
      }
    Items results = write(graph(), operands);
    note_decision(node, operands, results);
    ImportCall one(node, opset, graph(), operands, model_.folder, *this);
    add_bounds(one, results, write);
    return results;
  }

  void note_decision(const NodeProto& node, const Items& operands, Items& results) {
    const std::string given = follow_sizes(graph(), node, operands, results);
    if (!given.empty()) result_.decisions.push_back(told(node) + ", given" + given);
  }

  static Items element_wise(ImportCall& call, const Operator& op) {
    std::vector<Value> operands;
    Shape to = call.count() > 0 ? call.shape(0) : Shape{};
    for (int k = 1; k < call.count(); ++k) to = broadcast_shapes(to, call.shape(k));
    for (int k = 0; k < call.count(); ++k) operands.push_back(call.b.broadcast(call[k], to));
    return {Item(call.graph.add(op, std::move(operands)))};
  }

  static bool takes_graphs(const NodeProto& node) {
    return std::any_of(node.attributes.begin(), node.attributes.end(),
                       [](const AttributeProto& each) { return each.graph != nullptr; });
  }

  const FunctionProto* find_function(const NodeProto& node) const {
    for (const FunctionProto& each : model_.functions)
      if (each.name == node.op_type && each.domain == node.domain && each.overload == node.overload)
        return &each;
    return nullptr;
  }

  Items inline_function(const FunctionProto& function, const NodeProto& node, const Items& operands) {
    Deeper deeper(*this, "functions call each other");
    NodeProto with_defaults = node;
    for (const AttributeProto& each : function.defaults)
      if (!with_defaults.find(each.name)) with_defaults.attributes.push_back(each);
    Scope scope{{}, nullptr, &function.opsets, &with_defaults, levels_.size()};
    for (size_t i = 0; i < function.inputs.size(); ++i)
      scope.values[function.inputs[i]] = i < operands.size() ? operands[i] : Item{};
    run_nodes(function.nodes, scope);
    Items results;
    for (const std::string& name : function.outputs)
      results.push_back(find(name, scope, "a result of the function"));
    return results;
  }

  const Model& model_;
  const ImportOptions& options_;
  Imported result_;
  const Scope* scope_ = nullptr;
  std::vector<Level*> levels_;      // bodies that are being written, the outermost first
  int64_t finished_ = 0, run_ = 0;  // nodes of bodies; nodes of the file
  int depth_ = 0;
  // Of a model that is to be trained on.
  LearningNotes notes_;
  LearningNotes in_bodies_;  // these are as in evaluation
  Needed needed_;
};

}  // namespace

Imported import_model(const Model& model, const ImportOptions& options) {
  return Importer(model, options).run();
}

}  // namespace millrace::onnx
