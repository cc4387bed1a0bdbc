// Tensor: a lazy array. Operations on tensors build a graph; reading a value on the host evaluates it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/array.h>
#include <millrace/attributes.h>
#include <millrace/type.h>

namespace millrace {

struct TensorNode;
class HostScalar;

/// A handle with value semantics: a concrete array, a symbol (the input of a graph under construction), or
/// the result of an operation not yet computed. Copies share the computation. Shapes and dtypes are checked
/// when an operation is recorded (TypeError names operator, operand types and layer); numbers are computed
/// when the host reads them, all that is needed in one compiled graph, which is cached by its structure. Use
/// a tensor from one thread at a time.
class Tensor {
 public:
  Tensor() = default;
  Tensor(Array value);  // NOLINT: an array is a tensor
  /// An unknown value of this type: the input of a graph (dimensions may be named).
  static Tensor symbol(std::string name, Type type);
  /// Every element equal to `value`; kept as a scalar in the graph.
  static Tensor full(const Shape& shape, double value, DType dtype = f32,
                     std::source_location where = std::source_location::current());
  static Tensor zeros(const Shape& shape, DType dtype = f32,
                      std::source_location where = std::source_location::current()) {
    return full(shape, 0, dtype, where);
  }
  static Tensor ones(const Shape& shape, DType dtype = f32,
                     std::source_location where = std::source_location::current()) {
    return full(shape, 1, dtype, where);
  }
  /// Row-major values.
  static Tensor of(const Shape& shape, std::initializer_list<double> values, DType dtype = f32);

  bool defined() const { return node_ != nullptr; }
  const Type& type() const;
  DType dtype() const { return type().dtype; }
  const Shape& shape() const { return type().shape; }
  int rank() const { return shape().rank(); }
  /// Size of a dimension; negative counts from the end.
  const Dim& dim(int axis) const;
  /// True when the value is known without computing.
  bool is_concrete() const;
  bool is_symbol() const;

  /// Reads on the host; each computes what is missing. Inside compile(fn) they split the graph. Throw
  /// TypeError for a symbol, and item() and bool for tensors of more than one element.
  Array to_array(std::source_location where = std::source_location::current()) const;
  HostScalar item(std::source_location where = std::source_location::current()) const;
  /// `if (x.sum() < 0)`: not zero.
  explicit operator bool() const;

  // Shorthands of the functions below.
  Tensor sum(const std::vector<int64_t>& axes = {}, bool keep_dims = false,
             std::source_location where = std::source_location::current()) const;
  Tensor mean(const std::vector<int64_t>& axes = {}, bool keep_dims = false,
              std::source_location where = std::source_location::current()) const;
  Tensor reshape(const Shape& shape, std::source_location where = std::source_location::current()) const;
  Tensor cast(DType dtype, std::source_location where = std::source_location::current()) const;

  /// The implementation's view.
  explicit Tensor(std::shared_ptr<TensorNode> node, int output = 0)
      : node_(std::move(node)), output_(output) {}
  const std::shared_ptr<TensorNode>& node() const { return node_; }
  int output() const { return output_; }

 private:
  std::shared_ptr<TensorNode> node_;
  int output_ = 0;
};

/// A number that came from a tensor. It stays in the graph in arithmetic with tensors; converting it to a C++
/// number reads it (inside compile(fn): a break, and the rest is recorded for that value).
class HostScalar {
 public:
  HostScalar(Tensor value, std::source_location where) : value_(std::move(value)), where_(where) {}
  operator double() const;  // NOLINT: reads as a number
  const Tensor& tensor() const { return value_; }
  const std::source_location& where() const { return where_; }

 private:
  Tensor value_;
  std::source_location where_;
};

/// The first argument of every tensor function: a tensor, and where in the user's source the call stands.
struct In {
  const Tensor& tensor;
  std::source_location where;
  In(const Tensor& t, std::source_location w = std::source_location::current())
      : tensor(t), where(w) {}                                                       // NOLINT
  In(const HostScalar& s, std::source_location w = std::source_location::current())  // NOLINT
      : tensor(s.tensor()), where(w) {}
};

/// The second argument of a binary operator: a tensor, or a number that takes the other operand's dtype.
struct Operand {
  const Tensor* tensor = nullptr;
  double number = 0;
  bool from_item = false;
  std::source_location where;
  Operand(const Tensor& t, std::source_location w = std::source_location::current())
      : tensor(&t), where(w) {}                                                           // NOLINT
  Operand(const HostScalar& s, std::source_location w = std::source_location::current())  // NOLINT
      : tensor(&s.tensor()), from_item(true), where(w) {}
  template <typename T>
  requires std::is_arithmetic_v<T> Operand(
      T value, std::source_location w = std::source_location::current())  // NOLINT
      : number(static_cast<double>(value)), where(w) {}
};

/// Appends the operator of that name to the computation; the results as tensors. Operators do not broadcast
/// (the functions below do). `where`: for messages and explain().
std::vector<Tensor> apply(std::string_view op, std::span<const Tensor> operands, Attributes attributes = {},
                          std::source_location where = std::source_location::current());

/// Computes all of them in one graph, as a read of each would.
void evaluate(std::span<const Tensor> tensors, std::source_location where = std::source_location::current());
/// Where and how eager tensors are computed on this thread: "cpu" (default) or "ref".
void set_default_target(std::string target);
const std::string& default_target();

/// Position of a run's random numbers: operators that draw use this key and a stream number of their own.
struct RandomKey {
  Tensor key;  // i64[2]: seed, step
  int64_t stream = 0;
};
/// The key for the next use of random numbers on this thread: in eager code (seed, count of uses).
RandomKey next_random_key();
/// Seeds eager random numbers and starts their count again.
void manual_seed(uint64_t seed);

// Element-wise functions; binary ones broadcast by numpy's rule. dtypes must be equal (casts are explicit),
// numbers take the tensor's dtype: TypeError when an integer tensor meets a number that its dtype cannot
// hold.
Tensor operator+(const In& a, const Operand& b);
Tensor operator-(const In& a, const Operand& b);
Tensor operator*(const In& a, const Operand& b);
Tensor operator/(const In& a, const Operand& b);
Tensor operator<(const In& a, const Operand& b);
Tensor operator<=(const In& a, const Operand& b);
Tensor operator>(const In& a, const Operand& b);
Tensor operator>=(const In& a, const Operand& b);
Tensor operator-(const In& a);
template <typename T>
concept Number = std::is_arithmetic_v<T>;
Tensor reversed(std::string_view op, double a, const In& b);  // a op b, for the four below
template <Number T>
Tensor operator+(T a, const In& b) {
  return reversed("add", static_cast<double>(a), b);
}
template <Number T>
Tensor operator-(T a, const In& b) {
  return reversed("sub", static_cast<double>(a), b);
}
template <Number T>
Tensor operator*(T a, const In& b) {
  return reversed("mul", static_cast<double>(a), b);
}
template <Number T>
Tensor operator/(T a, const In& b) {
  return reversed("div", static_cast<double>(a), b);
}
Tensor equal(const In& a, const Operand& b);
Tensor not_equal(const In& a, const Operand& b);
Tensor maximum(const In& a, const Operand& b);
Tensor minimum(const In& a, const Operand& b);
Tensor pow(const In& a, const Operand& b);
Tensor logical_and(const In& a, const Operand& b);
Tensor logical_or(const In& a, const Operand& b);
Tensor logical_not(const In& a);
Tensor exp(const In& a);
Tensor log(const In& a);
Tensor sqrt(const In& a);
Tensor rsqrt(const In& a);
Tensor abs(const In& a);
Tensor tanh(const In& a);
Tensor erf(const In& a);
Tensor sigmoid(const In& a);
Tensor relu(const In& a);
Tensor gelu(const In& a);  // exact, by erf
Tensor silu(const In& a);
Tensor clamp(const In& a, double low, double high);
/// a where the condition holds, else b.
Tensor where(const In& condition, const Operand& a, const Operand& b);
Tensor cast(const In& a, DType dtype);

// Shapes. Axes may be negative: counted from the end.
Tensor reshape(const In& a, const Shape& shape);
/// Dimensions from `first` on become one.
Tensor flatten(const In& a, int first = 0);
Tensor squeeze(const In& a);            // without the dimensions of size 1
Tensor squeeze(const In& a, int axis);  // TypeError when that one is not of size 1
Tensor unsqueeze(const In& a, int axis);
Tensor broadcast_to(const In& a, const Shape& shape);
Tensor transpose(const In& a, const std::vector<int64_t>& permutation);
Tensor slice(const In& a, int axis, int64_t start, int64_t end);
/// One position of an axis, which disappears.
Tensor select_index(const In& a, int axis, int64_t index);
Tensor concat(std::span<const Tensor> parts, int axis,
              std::source_location where = std::source_location::current());
/// Zeros (or `value`) around: one (before, after) pair a dimension.
Tensor pad(const In& a, const std::vector<std::pair<int64_t, int64_t>>& amounts, double value = 0);

// Reductions; no axes: over all.
Tensor sum(const In& a, const std::vector<int64_t>& axes = {}, bool keep_dims = false);
Tensor mean(const In& a, const std::vector<int64_t>& axes = {}, bool keep_dims = false);
Tensor max(const In& a, const std::vector<int64_t>& axes = {}, bool keep_dims = false);
Tensor min(const In& a, const std::vector<int64_t>& axes = {}, bool keep_dims = false);
Tensor argmax(const In& a, int axis, bool keep_dims = false);

// Products.
/// Rank ≥ 2; equal leading (batch) dimensions, or a rank-2 b for all of a's.
Tensor matmul(const In& a, const Tensor& b, bool transpose_a = false, bool transpose_b = false);
/// x · weightᵀ + bias; x [..., in], weight [out, in], bias [out] or undefined.
Tensor linear(const In& x, const Tensor& weight, const Tensor& bias = {});

struct Conv2dOptions {
  std::vector<int64_t> strides = {1, 1};
  std::vector<int64_t> pads = {0, 0, 0, 0};  // top, left, bottom, right
  std::vector<int64_t> dilations = {1, 1};
  int64_t groups = 1;
};
/// x [N, C, H, W], weight [O, C / groups, kh, kw], bias [O] or undefined.
Tensor conv2d(const In& x, const Tensor& weight, const Tensor& bias = {}, const Conv2dOptions& options = {});
/// Windows over [N, C, H, W]; pads: top, left, bottom, right, never the maximum (max) or not counted
/// (average).
Tensor max_pool2d(const In& x, const std::vector<int64_t>& kernel, const std::vector<int64_t>& strides,
                  const std::vector<int64_t>& pads = {0, 0, 0, 0});
Tensor avg_pool2d(const In& x, const std::vector<int64_t>& kernel, const std::vector<int64_t>& strides,
                  const std::vector<int64_t>& pads = {0, 0, 0, 0});

// Positions.
/// Rows of table [rows, width] at `indices` (i64, any shape): [indices..., width].
Tensor embedding(const In& table, const Tensor& indices);
Tensor one_hot(const In& indices, int64_t classes, DType dtype = f32);
/// 0, 1, 2 … along a dimension of size `size`.
Tensor iota(int64_t size, DType dtype = i64, std::source_location where = std::source_location::current());

// Networks' functions.
Tensor softmax(const In& x, int axis = -1);
Tensor log_softmax(const In& x, int axis = -1);
/// Over the last dimension; weight and bias [width].
Tensor layer_norm(const In& x, const Tensor& weight, const Tensor& bias, double epsilon = 1e-5);
Tensor rms_norm(const In& x, const Tensor& weight, double epsilon = 1e-6);
/// softmax(q·kᵀ / sqrt(width))·v over [batch, heads, length, width]; `mask`: bool, true where attended,
/// broadcastable to [batch, heads, length of q, length of k], or undefined.
Tensor attention(const In& q, const Tensor& k, const Tensor& v, bool causal = false, const Tensor& mask = {});
/// Zeroes with probability p and scales the rest by 1/(1 − p); draws at `random`.
Tensor dropout(const In& x, double p, const RandomKey& random);
Tensor random_uniform(const Shape& shape, const RandomKey& random, DType dtype = f32,
                      std::source_location where = std::source_location::current());
Tensor random_normal(const Shape& shape, const RandomKey& random, DType dtype = f32,
                     std::source_location where = std::source_location::current());

/// A loop in the graph: `step` is called once, with tensors that stand for the carries and for the slices of
/// one step along dimension 0 of the sequences, and gives the next carries and what is stacked. Whatever else
/// it uses is the same in every step. `reverse` runs from the last position to the first; slices and stacks
/// keep their positions. At least one sequence is needed; all have the same leading dimension. The step must
/// not read its tensors on the host.
struct ScanResult {
  std::vector<Tensor> carries;  // after the last step
  std::vector<Tensor> stacked;  // [steps, …]
};
using ScanStep = std::function<ScanResult(std::span<const Tensor> carries, std::span<const Tensor> slices)>;
ScanResult scan(const ScanStep& step, std::span<const Tensor> carries, std::span<const Tensor> sequences,
                bool reverse = false, std::source_location where = std::source_location::current());

/// A choice in the graph: what `then` gives where `condition`, a bool scalar, is true, else what `otherwise`
/// gives. Both are called once and use what they capture; only the one that is chosen is run. They give as
/// many tensors as each other, of the same types, and must not read tensors on the host. Gradients flow
/// through the branch that was run.
using Branch = std::function<std::vector<Tensor>()>;
std::vector<Tensor> cond(const Tensor& condition, const Branch& then, const Branch& otherwise,
                         std::source_location where = std::source_location::current());

/// A loop in the graph that runs as long as `condition`, a bool scalar of the state, is true, for `limit`
/// steps at most. `step` gives the next state, whose types stay, and what is stacked: as large as `limit`
/// says, with zeros for the steps that were not run. Both are called for their graphs alone and must not read
/// tensors on the host. Gradients need a limit, and cost as much as all its steps.
struct WhileResult {
  std::vector<Tensor> state;    // after the last step
  std::vector<Tensor> stacked;  // [limit, …]
  Tensor steps;                 // how many were run, i64
};
using WhileCondition = std::function<Tensor(std::span<const Tensor> state)>;
using WhileStep = std::function<ScanResult(std::span<const Tensor> state)>;
WhileResult while_loop(const WhileCondition& condition, const WhileStep& step, std::span<const Tensor> state,
                       int64_t limit = no_limit,
                       std::source_location where = std::source_location::current());

// Losses: the mean over all rows.
/// logits [N, classes] against class numbers (i64 [N]) or probabilities ([N, classes]).
Tensor cross_entropy(const In& logits, const Tensor& target, double label_smoothing = 0);
Tensor bce_with_logits(const In& logits, const Tensor& target);
Tensor mse_loss(const In& prediction, const Tensor& target);
Tensor huber_loss(const In& prediction, const Tensor& target, double delta = 1);

/// The scalar value of a function of tensors, and its gradients with respect to them. The function must not
/// read its tensors on the host; shapes must be static. Calls may be nested: gradients of gradients.
struct ValueAndGradients {
  Tensor value;
  std::vector<Tensor> gradients;
};
ValueAndGradients value_and_gradients(const std::function<Tensor(std::span<const Tensor>)>& function,
                                      std::span<const Tensor> arguments,
                                      std::source_location where = std::source_location::current());

/// Arithmetic of numbers from tensors stays in the graph.
template <Number T>
HostScalar operator+(const HostScalar& a, T b) {
  return {In(a) + b, a.where()};
}
template <Number T>
HostScalar operator-(const HostScalar& a, T b) {
  return {In(a) - b, a.where()};
}
template <Number T>
HostScalar operator*(const HostScalar& a, T b) {
  return {In(a) * b, a.where()};
}
template <Number T>
HostScalar operator/(const HostScalar& a, T b) {
  return {In(a) / b, a.where()};
}
template <Number T>
HostScalar operator<(const HostScalar& a, T b) {
  return {In(a) < b, a.where()};
}
template <Number T>
HostScalar operator>(const HostScalar& a, T b) {
  return {In(a) > b, a.where()};
}

}  // namespace millrace
