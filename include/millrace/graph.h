// The graph: operators over immutable values in SSA form.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/attributes.h>
#include <millrace/type.h>

namespace millrace {

struct Operator;
class Graph;

/// The `output`-th result of node `node` of a graph.
struct Value {
  int32_t node = -1;
  int32_t output = 0;
  bool operator==(const Value&) const = default;
  auto operator<=>(const Value&) const = default;
  bool valid() const { return node >= 0; }
};

/// The part of a training step that a node belongs to. Graphs that only compute something are all `forward`.
enum class Phase : uint8_t { forward, backward, update };
/// "forward", "backward", "update"
std::string_view phase_name(Phase phase);

/// A name whose copies are one text in memory, as passes copy nodes far more often than anyone names one.
class SharedName {
 public:
  SharedName() = default;
  SharedName(std::string name)  // NOLINT: converts
      : text_(name.empty() ? nullptr : std::make_shared<const std::string>(std::move(name))) {}
  const std::string& str() const;
  operator const std::string&() const { return str(); }  // NOLINT: converts
  bool empty() const { return !text_; }
  bool operator==(const SharedName& other) const { return text_ == other.text_ || str() == other.str(); }
  bool operator==(std::string_view other) const { return str() == other; }

 private:
  std::shared_ptr<const std::string> text_;  // null: empty
};

/// The types of a node's results: a list, copies of which are one in memory.
class ResultTypes {
 public:
  ResultTypes() = default;
  ResultTypes(std::vector<Type> types)  // NOLINT: converts
      : types_(std::make_shared<const std::vector<Type>>(std::move(types))) {}
  const std::vector<Type>& list() const;
  operator const std::vector<Type>&() const { return list(); }  // NOLINT: converts
  const Type& operator[](size_t i) const { return (*types_)[i]; }
  size_t size() const { return types_ ? types_->size() : 0; }
  bool empty() const { return size() == 0; }
  std::vector<Type>::const_iterator begin() const { return list().begin(); }
  std::vector<Type>::const_iterator end() const { return list().end(); }
  bool operator==(const ResultTypes& other) const { return types_ == other.types_ || list() == other.list(); }

 private:
  std::shared_ptr<const std::vector<Type>> types_;  // null: empty
};

/// Where a node comes from. Passes hand it on; it means nothing to what is computed.
struct Origin {
  SharedName layer;  // its location, for messages alone: "blocks.0.conv1", or the place of the call
  /// It is the place of a call in C++ ("demo.cpp:12"), in no layer: a loss's, for one. Known where a graph is
  /// captured and to what is derived from that; text does not keep it, and equality does not ask.
  bool call = false;
  Phase phase = Phase::forward;
  /// What stands elsewhere too is computed once more, to save memory: not to be merged with that.
  bool again = false;

  Origin() = default;
  Origin(std::string name, Phase part = Phase::forward)
      : layer(std::move(name)), phase(part) {}            // NOLINT: converts
  Origin(const char* name) : layer(std::string(name)) {}  // NOLINT
  bool operator==(const Origin& other) const {
    return layer == other.layer && phase == other.phase && again == other.again;
  }
  bool empty() const { return layer.empty(); }
  /// The same place, in a phase.
  Origin in_phase(Phase part) const {
    Origin copy = *this;
    copy.phase = part;
    return copy;
  }
  /// The same place, computed again in a phase.
  Origin repeated(Phase part) const {
    Origin copy = in_phase(part);
    copy.again = true;
    return copy;
  }
  /// For people: "blocks.0.conv1", "blocks.0.conv1, again".
  std::string place() const { return again ? layer.str() + ", again" : layer.str(); }
  /// The place and "(backward)"; the forward phase is not printed.
  std::string str() const;
};

/// One operation. Operands always stand earlier in the graph.
struct Node {
  const Operator* op = nullptr;
  std::vector<Value> operands;
  Attributes attributes;
  ResultTypes types;
  std::shared_ptr<const Graph>
      body;  // composites: what the node means, in simpler operators; loops: one step; branches: both
  Origin origin;
};

/// A function from inputs to outputs. Nodes are appended in topological order and never change; passes build
/// new graphs. Types are checked when a node is added.
class Graph {
 public:
  /// Appends a graph input. TypeError when its type has a fault().
  Value input(std::string name, Type type);
  /// Appends a constant.
  Value constant(Array value);
  /// A scalar constant of a dtype.
  Value scalar(DType dtype, double value) { return constant(Array::scalar(dtype, value)); }

  /// Appends an operator. Missing attributes take the operator's defaults; types come from its rule and a
  /// composite's body is built. Throws TypeError (operator, operand types, location) when they do not fit.
  /// Returns the first result; the others are {node, 1}, {node, 2} …
  Value add(const Operator& op, std::vector<Value> operands, Attributes attributes = {});
  Value add(std::string_view op, std::vector<Value> operands, Attributes attributes = {});
  /// Appends a composite with a given body (fusion, captured functions); types are those of the body's
  /// outputs. Those of control flow come from its rule. TypeError when operands and body do not fit or the
  /// operator takes no body.
  Value add_with_body(const Operator& op, std::vector<Value> operands, Attributes attributes,
                      std::shared_ptr<const Graph> body);
  /// Appends what node `index` of another graph is, on operands of this one. Where these have the types of
  /// that one's, nothing is derived anew: passes copy most nodes. TypeError when they do not fit.
  Value add_copy(const Graph& from, int index, std::vector<Value> operands);
  /// Names what is computed; may be called again. TypeError when one is not a value of the graph.
  void set_outputs(std::vector<Value> outputs, std::vector<std::string> names = {});

  /// A constant's array has no memory from now on; other graphs that have the constant keep theirs.
  void drop_elements(int constant);

  /// The origin that nodes added from now on carry.
  void set_origin(const Origin& origin) { origin_ = origin; }
  const Origin& origin() const { return origin_; }

  int size() const { return static_cast<int>(nodes_.size()); }
  const Node& node(int index) const { return *nodes_[index]; }
  const Node& node(Value value) const { return *nodes_[value.node]; }
  const Type& type(Value value) const { return nodes_[value.node]->types[value.output]; }
  const std::vector<Value>& inputs() const { return inputs_; }
  const std::vector<Value>& outputs() const { return outputs_; }
  const std::vector<std::string>& input_names() const { return input_names_; }
  const std::vector<std::string>& output_names() const { return output_names_; }
  /// The array when the value is a constant, else null.
  const Array* constant_value(Value value) const;
  bool is_input(Value value) const;
  /// Whether it is a result of a node of this graph; the accessors above take only such values.
  bool has(Value value) const;

  /// How often each node's results are used (outputs of the graph count); index: node.
  std::vector<int> use_counts() const;

  /// Checks everything that add() guarantees plus inputs, outputs and bodies; throws InternalError. Passes
  /// call it.
  void verify() const;

  /// Text form that parse() reads back to an equal graph.
  std::string str() const;
  /// Parses str()'s form; throws InputError with the line.
  static Graph parse(std::string_view text);
  bool operator==(const Graph& other) const;

 private:
  Value append(Node node);
  std::vector<std::shared_ptr<const Node>> nodes_;  // of several graphs, where passes leave them as they are
  std::vector<Value> inputs_, outputs_;
  std::vector<std::string> input_names_, output_names_;
  Origin origin_;
};

/// Rebuilds graphs: maps the values of an old graph to those of a new one. Passes are loops over old nodes
/// that either copy() them or set() something else.
class Rewriter {
 public:
  explicit Rewriter(const Graph& from);
  /// Maps all inputs to inputs of the new graph.
  void copy_inputs();
  /// Copies node `index` with mapped operands (and bindings for named dimensions applied, when given).
  void copy(int index, const Bindings* bindings = nullptr);
  void set(Value old_value, Value new_value);
  /// The results of node `index` are those of the node that `first` is of.
  void set_all(int index, Value first);
  /// Maps all inputs, then goes through the nodes in order, but for those whose results are set already:
  /// `changed` sets a node's results and says so, else it is copied.
  void go_through(const std::function<bool(int index)>& changed);
  Value operator[](Value old_value) const;
  bool has(Value old_value) const;
  std::vector<Value> mapped(std::span<const Value> old_values) const;
  Graph& graph() { return to_; }
  /// Maps outputs and hands the new graph over.
  Graph finish();

 private:
  const Graph& from_;
  Graph to_;
  std::vector<int> first_;  // node → place of its first result in map_; one more at the end
  std::vector<Value> map_;
};

/// Copies the body of `part` into `into`, its inputs replaced by `arguments`; returns the values of its
/// outputs. TypeError when there are not as many arguments as inputs.
std::vector<Value> inline_graph(Graph& into, const Graph& part, std::span<const Value> arguments);

/// The same graph with named dimensions bound to numbers; throws TypeError when a name stays unbound or a
/// size is negative.
Graph specialise(const Graph& graph, const Bindings& bindings);

}  // namespace millrace
