// What an operator is, and all that is known about it. The library's own are one file each in src/ops/; a
// program's own are added by register_operator(), and every pass, back end and export treats both alike: by
// what they declare here.
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/graph.h>
#include <millrace/scalar.h>

namespace millrace {

struct OnnxCall;  // <millrace/onnx_rule.h>

/// How the code generator and the layout pass see an operator.
enum class OpClass {
  elementwise,  // result element depends on the operand elements at the same (broadcast) position: has a
                // scalar body
  movement,     // broadcast, transpose, slice, concat, pad, gather, one_hot, pooling …: has an element body
  reduction,    // sum, mean, max, min, argmax, argmin over attribute `axes`
  generator,    // iota, random_*: has an element body; no operand, or just the key
  view,   // reshape, after: the elements of the first operand in the same order; others are only waited for
  heavy,  // matmul, convolutions, scatter_add: providers compete for it
  composite,  // has a body
  group,   // fused: its node carries a body of element-wise, movement and generator operators and reductions
  loop,    // scan, while_loop: run the body their node carries many times
  branch,  // cond: runs one half of the body its node carries
  input,
  constant
};

/// Operand types and attributes handed to a type rule. error() throws TypeError with operator and types.
struct TypeContext {
  const Operator& op;
  std::span<const Type> operands;
  const Attributes& attributes;
  const Origin& origin;
  const Graph* body = nullptr;  // loops and branches: the body that the node carries
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

/// One case that tests, fuzzers and benchmarks run: operand types, attributes, and the range values are drawn
/// from.
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
  /// Loops and branches: makes the body for the given operand types.
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

/// How a reduction combines elements over its `axes` attribute (`keep_dims` keeps them as size 1). argmax and
/// argmin reduce one axis to the i64 position of the first extreme.
enum class Reduction { sum, mean, max, min, argmax, argmin };

/// What mixed precision ("bf16", "fp16") makes of an operator.
enum class Arithmetic {
  narrow,   // 16-bit operands and results, sums in f32
  follows,  // keeps relative and absolute errors about as they are: its result may be stored in 16 bits when
            // operands are
  full      // f32: statistics, reductions, losses, exp and what else says nothing
};

/// What becomes of a small error of an operand.
enum class ErrorGrowth {
  none,
  large,  // a small error of a large number becomes a large one (exp, division, sine): such operands stay f32
  decisive  // the last bit decides (comparison for equality): nor are such operands computed twice, by
            // different code
};

/// What the numbers of an operand are taken for, if they are to be logits, of any sign.
enum class Logits {
  none,
  row,  // of the classes of a row, whose probabilities add up to 1
  each  // of labels, of which each has its own probability
};

/// Whether a value may be computed again where it is read, instead of being stored.
enum class Repeat {
  free,    // costs nothing where it is read: always (broadcast, iota)
  cheap,   // where reading it would cost as much
  costly,  // only under a memory budget
  never
};

/// A loop's body is computed for all steps at once: what differs from step to step is there as a stack, with
/// the steps as dimension 0. Handed to the rule of a node that reads such a stack; the rule emits into
/// `graph`.
struct StackContext {
  Graph& graph;
  const Node& node;             // of the body
  std::span<const Type> types;  // of its operands, in one step
  std::vector<char> stacked;    // operands that differ from step to step
  int64_t steps;
  std::function<Value(int)> value;  // operand k: a stack, or as it is
  std::function<Value(int)> stack;  // operand k as a stack in any case
  /// `shape`, of every step.
  Shape of_steps(Shape shape) const {
    shape.insert(shape.begin(), Dim(steps));
    return shape;
  }
};

/// How many elements of its first operand a node reads, and of its first result it writes.
struct Touched {
  int64_t read = 0, written = 0;
};

struct Operator {
  std::string_view name;
  OpClass op_class = OpClass::elementwise;
  std::string_view doc;
  int min_operands = 1, max_operands = 1;  // max −1: any number
  std::vector<AttributeSpec> attributes;

  /// Result types; throws TypeError through context.error().
  std::function<std::vector<Type>(const TypeContext&)> types;

  /// Elementwise: the value of one element from the operands' elements. Interpreted by ref and compiled by
  /// cpu.
  std::function<Scalar(ScalarBuilder&, std::span<const Scalar>, const Node&)> scalar;
  /// Elementwise: the one scalar operation that its body is, where it is one (set_scalar() sets both).
  /// Algebra asks for it.
  std::optional<ScalarOp> scalar_op;

  /// Movement and generator: the value of the result element at `index` (i64 scalars, one a dimension), by
  /// loads from operands at computed positions. Compiled by cpu; for the library's own ref has independent
  /// code.
  std::function<Scalar(ElementBuilder&, std::span<const Scalar> index, const ElementContext&)> element;

  /// The element body loads several elements of an operand (pooling): computing the operand anew for each
  /// would be waste, so fusion stores it first.
  bool window = false;
  /// With `window`: true for a node that loads no operand element for two result elements (windows that do
  /// not overlap), so that its operands may be computed where they are loaded.
  std::function<bool(const Node&)> disjoint;

  /// Reduction: how elements combine.
  std::optional<Reduction> reduction;

  /// Heavy: how many floating-point operations a node is (ops/work.h says how they count). Of all other
  /// classes they are counted from the bodies.
  std::function<double(const Graph&, const Node&)> flops;

  /// How much a node touches of its first operand and its first result, which else count as whole.
  /// `in_place`: the result lies in the operand's memory, so that what stays as it was need not be touched.
  std::function<Touched(const Graph&, const Node&, bool in_place)> touches;

  /// Heavy, of a program's own: what it computes, plainly. The library's own are in src/backend/ref/.
  std::function<std::vector<Array>(const Node&, std::span<const Array>)> evaluate;

  /// Composite: emits the meaning into a graph whose inputs are given; returns the results.
  std::function<std::vector<Value>(Graph&, std::span<const Value>, const Attributes&)> body;

  /// Gradients with respect to the operands, invalid where none flows (integers). Composites may leave it
  /// empty: the body's gradient is used. `differentiable` false: results are constants to autodiff
  /// (comparisons, argmax, iota).
  std::function<std::vector<Value>(const GradientContext&)> gradient;
  bool differentiable = true;

  // ---- What passes ask. An operator that declares none of it is only slower. ----

  /// Nothing said: movement and views follow, all others are full.
  std::optional<Arithmetic> arithmetic;
  /// "bf16" narrows so many of the first operands even so (what attention multiplies; its statistics and mask
  /// stay f32). Negative: all but so many of the last ones.
  int narrow_operands = 0;
  ErrorGrowth errors = ErrorGrowth::none;
  Repeat repeat = Repeat::cheap;
  /// Results that are floats lie within these, whatever the operands are.
  double lowest = -std::numeric_limits<double>::infinity(), highest = std::numeric_limits<double>::infinity();
  /// Of the first operand.
  Logits logits = Logits::none;
  /// Draws numbers, from a key among its operands and the attribute `stream`: the same ones whenever it is
  /// computed again.
  bool random = false;
  /// Movement: the operand repeated by numpy's rule, aligned at the last dimension.
  bool broadcasts = false;
  /// Element-wise: the operand in another dtype, as near as that holds it.
  bool converts = false;
  /// Element-wise: the second operand where the first one holds, else the third.
  bool chooses = false;
  /// Of one operand and a result of its type it gives the operand as it is (a slice of all).
  bool unchanged = false;
  /// Movement that only reorders axes: for each axis of the result the operand's.
  std::function<std::vector<int64_t>(const Node&)> permutation;
  /// Element-wise with one operand: whether 0 gives 0.
  std::function<bool(const Node&)> keeps_zero;
  /// Positions along dimension `dim` of the result where it begins to come from elsewhere (another operand,
  /// padding), and the end when one is such: code is compiled for the parts between them.
  std::function<std::vector<int64_t>(const ElementContext&, int dim)> seams;

  /// The node for all steps of a loop at once; element-wise operators and reductions need none. `can_stack`:
  /// whether this node has such a form, given which operands differ from step to step; empty: always.
  std::function<Value(const StackContext&)> stack;
  std::function<bool(const Node&, std::span<const Type>, std::span<const char> stacked)> can_stack;
  /// The axis of the result whose positions are made of the positions of an operand's `axis`, each of the
  /// same one, all of them in order; -1: there is none. Element-wise operators, reductions and permutations
  /// need none.
  std::function<int(const Node&, std::span<const Type>, int operand, int axis)> keeps_axis;
  /// With `keeps_axis`: the attributes for another size of such an axis of the result, where they differ.
  std::function<void(Attributes&, int axis, int64_t size)> set_axis;

  // ---- ONNX ----

  /// ONNX operators that stand for it, newest opset ≤ 17 first; empty: exported through its body or not at
  /// all. An element-wise operator without attributes is exported as the first.
  std::vector<std::string_view> onnx;
  /// Writes a node: the names of its results. Empty ones: this node goes through its body.
  std::function<std::vector<std::string>(const OnnxCall&)> onnx_rule;
  /// The oldest version of ONNX's operators that has what the rule writes.
  int onnx_opset = 17;

  std::vector<Sample> samples;
  Tolerance tolerance;

  bool is(ScalarOp what) const { return scalar_op == what; }
  bool is(Reduction what) const { return reduction == what; }
  /// A reshape: a view that waits for no other value.
  bool reshapes() const { return op_class == OpClass::view && max_operands == 1; }
  /// Not computed: an input or a constant.
  bool is_given() const { return op_class == OpClass::input || op_class == OpClass::constant; }
  /// Control flow: the node gives the body, and the operator says how it is run.
  bool runs_body() const { return op_class == OpClass::loop || op_class == OpClass::branch; }
  /// The node gives the body (groups, control flow); else the operator makes it.
  bool takes_body() const { return op_class == OpClass::group || runs_body(); }
};

/// Makes an element-wise operator the one scalar operation.
void set_scalar(Operator& op, ScalarOp what);

/// What mixed precision makes of a node, and how many of its operands, the first ones, "bf16" narrows.
Arithmetic arithmetic_of(const Operator& op);
size_t narrow_operands(const Node& node);

/// Adds the defaults of attributes that are not given. TypeError for attributes that are missing, unknown, of
/// the wrong type or out of their range, and for operators that have no type rule (input, fused …).
void complete_attributes(const Operator& op, Attributes& attributes, const Origin& origin);

/// Adds an operator to those of the library, for the rest of the process: graphs take it by name, and it is
/// differentiated, compiled, printed and exported like any. InputError when a part is missing that its class
/// demands (samples need not be given), or the name is taken. Its strings (name, docs) must stay.
const Operator& register_operator(Operator op);

/// The operator of that name, or null.
const Operator* find_operator(std::string_view name);
/// The operator of that name; throws InputError naming the nearest one.
const Operator& get_operator(std::string_view name);
/// The library's operators, by name, then those that were registered so far.
std::span<const Operator* const> all_operators();

}  // namespace millrace
