// What an operator is. One file in src/ops/ defines one, and src/ops/list.inc names it.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <millrace/graph.h>
#include <millrace/scalar.h>

namespace millrace {

/// How the code generator and the layout pass see an operator.
enum class OpClass {
  elementwise,  // result element depends on the operand elements at the same (broadcast) position: has a scalar body
  movement,   // broadcast, transpose, slice, concat, pad, gather, one_hot, pooling …: has an element body
  reduction,  // sum, mean, max, min, argmax, argmin over attribute `axes`
  generator,  // iota, random_*: has an element body; no operand, or just the key
  view,       // reshape, after: the elements of the first operand in the same order
  heavy,      // matmul, convolutions, scatter_add: providers compete for it
  composite,  // has a body
  loop,       // scan: runs the body its node carries many times
  structural  // input, constant
};

/// A declared attribute with its default; a node must give those without one.
struct AttributeSpec {
  std::string_view name;
  std::optional<Attribute> fallback;
  std::string_view doc;
};

/// Operand types and attributes handed to a type rule. error() throws TypeError with operator and types.
struct TypeContext {
  const Operator& op;
  std::span<const Type> operands;
  const Attributes& attributes;
  const Location& location;
  const Graph* body = nullptr;  // loops: the body that the node carries
  [[noreturn]] void error(const std::string& what) const;
};

/// Handed to gradient rules: everything about one node, and the graph to emit into.
struct GradientContext {
  Graph& graph;                             // emit here
  const Node& node;                         // attributes and types of the node
  std::span<const Value> operands;          // the node's operands in `graph`
  std::span<const Value> results;           // the node's results in `graph`
  std::span<const Value> result_gradients;  // invalid Value when no gradient reaches that result
  const Type& type(Value value) const { return graph.type(value); }
};

/// One case that tests, fuzzers and benchmarks run: operand types, attributes, and the range values are drawn from.
struct Sample {
  std::vector<Type> operands = {};
  Attributes attributes = {};
  /// Range of the random float operands; integer operands are drawn from [int_low, int_high].
  double low = -2, high = 2;
  int64_t int_low = 0, int_high = 5;
  /// Fixed values for some operands (index → values), e.g. gather indices or a random key.
  std::map<int, std::vector<double>> values = {};
  /// False where finite differences make no sense (ties, kinks at the drawn points).
  bool check_gradient = true;
  std::string note = {};
  /// Loops: makes the body for the given operand types.
  std::function<Graph(std::span<const Type>)> body = {};
};

/// Largest accepted |a − ref| / (1 + |ref|) between back ends, by dtype width.
struct Tolerance {
  double f32 = 1e-5, f64 = 1e-12, half = 2e-2;
};

/// What an element body may know: the node and its operands' types.
struct ElementContext {
  const Node& node;
  std::span<const Type> operands;
};

/// How a reduction combines elements over its `axes` attribute (`keep_dims` keeps them as size 1). argmax and argmin
/// reduce one axis to the i64 position of the first extreme.
enum class Reduction { sum, mean, max, min, argmax, argmin };

struct Operator {
  std::string_view name;
  OpClass op_class = OpClass::elementwise;
  std::string_view doc;
  int min_operands = 1, max_operands = 1;  // max −1: any number
  std::vector<AttributeSpec> attributes;

  /// Result types; throws TypeError through context.error().
  std::function<std::vector<Type>(const TypeContext&)> types;

  /// Elementwise: the value of one element from the operands' elements. Interpreted by ref and compiled by cpu.
  std::function<Scalar(ScalarBuilder&, std::span<const Scalar>, const Node&)> scalar;

  /// Movement and generator: the value of the result element at `index` (i64 scalars, one a dimension), by loads from
  /// operands at computed positions. Compiled by cpu; ref has independent code of its own.
  std::function<Scalar(ElementBuilder&, std::span<const Scalar> index, const ElementContext&)> element;

  /// The element body loads several elements of an operand (pooling): computing the operand anew for each would be waste,
  /// so fusion stores it first.
  bool window = false;
  /// With `window`: true for a node that loads no operand element for two result elements (windows that do not overlap),
  /// so that its operands may be computed where they are loaded.
  std::function<bool(const Node&)> disjoint;

  /// Reduction: how elements combine.
  std::optional<Reduction> reduction;

  /// Heavy: how many floating-point operations a node is (ops/work.h says how they count). Of all other classes they
  /// are counted from the bodies.
  std::function<double(const Graph&, const Node&)> flops;

  /// Composite: emits the meaning into a graph whose inputs are given; returns the results.
  std::function<std::vector<Value>(Graph&, std::span<const Value>, const Attributes&)> body;

  /// Gradients with respect to the operands, invalid where none flows (integers). Composites may leave it empty: the
  /// body's gradient is used. `differentiable` false: results are constants to autodiff (comparisons, argmax, iota).
  std::function<std::vector<Value>(const GradientContext&)> gradient;
  bool differentiable = true;

  /// ONNX operators that stand for it, newest opset ≤ 17 first; empty: exported through its body or not at all.
  std::vector<std::string_view> onnx;

  std::vector<Sample> samples;
  Tolerance tolerance;
};

/// Adds the defaults of attributes that are not given. TypeError for attributes that are missing, unknown or of the wrong
/// kind, and for operators that have no type rule (input, fused …).
void complete_attributes(const Operator& op, Attributes& attributes, const Location& location);

/// The operator of that name, or null.
const Operator* find_operator(std::string_view name);
/// The operator of that name; throws InputError naming the nearest one.
const Operator& get_operator(std::string_view name);
/// All operators, by name.
std::span<const Operator* const> all_operators();

}  // namespace millrace
