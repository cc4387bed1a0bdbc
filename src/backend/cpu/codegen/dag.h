// Expressions of a loop nest: a hash-consed graph of scalar operations over loop variables. Equal expressions
// have one id, so common subexpressions need no pass; integer index arithmetic is kept in a linear normal
// form.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <millrace/scalar.h>

namespace millrace::codegen {

enum class ExprKind : uint8_t {
  constant,
  linear,
  load,
  op,
  select,
  cast,
  fma,
  scale,
  bitcast,
  round_to,
  call
};

/// coefficient × (loop dimension or expression `id`).
struct Term {
  int id;
  int64_t coefficient;
  bool operator==(const Term&) const = default;
};

/// base + Σ dims + Σ atoms, in wrapping 64-bit arithmetic. Terms are sorted by id and have coefficients ≠ 0.
struct Linear {
  int64_t base = 0;
  std::vector<Term> dims;   // loop variables
  std::vector<Term> atoms;  // other i64 expressions
  /// The coefficient of loop dimension `dim`, 0 when absent.
  int64_t of_dim(int dim) const;
};

/// Values an i64 expression can take, both ends included.
struct Range {
  int64_t low = INT64_MIN, high = INT64_MAX;
  bool inside(int64_t from, int64_t to) const { return low >= from && high <= to; }
};

/// One expression. `dtype` is what it is computed in: 16-bit floats are f32 here, rounded by round_to and at
/// stores.
struct Expr {
  ExprKind kind = ExprKind::constant;
  ScalarOp op{};      // op
  DType dtype = {};   // of the value
  DType memory = {};  // load: as stored; round_to: the 16-bit type
  /// load: offset, and optionally the predicate under which it is done (else the value is 0)
  std::vector<int> args = {};
  int64_t bits = 0;       // constant: the integer, or the bits of the double; load: the buffer
  Linear linear = {};     // linear
  std::string name = {};  // call: a function of the C mathematical library
  uint64_t depends = 0;   // bit d: the value changes with loop dimension d
  Range range = {};       // i64 values
};

/// 1.5 × 2^23: adding it to an f32 rounds to a whole number and leaves that in the low bits.
constexpr double kRoundingShift = 12582912.0;

class Dag {
 public:
  /// `sizes`: the iteration space; dimension d runs over [0, sizes[d]).
  explicit Dag(std::vector<int64_t> sizes) : sizes_(std::move(sizes)) {}

  const std::vector<int64_t>& sizes() const { return sizes_; }
  const Expr& operator[](int id) const { return exprs_[id]; }
  int size() const { return static_cast<int>(exprs_.size()); }

  int constant(DType dtype, double value);
  int integer(DType dtype, int64_t value);
  /// The loop variable of a dimension (i64).
  int dim(int d);
  /// Dimensions may stand in any order.
  int linear(Linear value);
  /// The linear form of an i64 expression.
  Linear to_linear(int id) const;
  int unary(ScalarOp op, int a);
  int binary(ScalarOp op, int a, int b);
  int select(int condition, int if_true, int if_false);
  int cast(int a, DType dtype);
  /// a × b + c with one rounding.
  int fma(int a, int b, int c);
  /// a × 2^k with one rounding (f32); `shifted` is k + kRoundingShift, k a whole number from −150 to 130, or
  /// NaN where a is.
  int scale(int a, int shifted);
  /// The same bits, of a value of dtype `from`, as another type of the same width.
  int bitcast(int a, DType from, DType dtype);
  /// An f32 rounded to the precision of a 16-bit float.
  int round_to(int a, DType dtype);
  /// A function of the C mathematical library, called for each lane.
  int call(const std::string& name, std::vector<int> args);
  /// An element of a buffer. `predicate` < 0: always; else 0 where the predicate is false.
  int load(int buffer, DType memory, int offset, int predicate);

  bool is_true(int id) const { return is_constant(id) && exprs_[id].bits != 0; }
  bool is_false(int id) const { return is_constant(id) && exprs_[id].bits == 0; }
  bool is_constant(int id) const { return exprs_[id].kind == ExprKind::constant; }

  /// Copies what `roots` need into a new iteration space, linear forms over dimensions replaced by `map`
  /// (which must give an expression of `to`). Atoms are handled by the copy. `roots` are replaced by their
  /// new ids.
  static void copy(const Dag& from, Dag& to, std::span<int* const> roots,
                   const std::function<int(Dag& to, const Linear& dims_only)>& map);

 private:
  int intern(Expr expr);
  int binary_i64(ScalarOp op, int a, int b);
  int divide(ScalarOp op, int a, int64_t divisor);
  int compare(ScalarOp op, int a, int b);
  Range range_of(const Linear& linear) const;
  Range range_of(const Expr& expr) const;

  std::vector<int64_t> sizes_;
  std::vector<Expr> exprs_;
  std::unordered_map<std::string, int> ids_;
};

/// Canonical text of one expression; equal text means equal expression.
std::string text_of(const Expr& expr);

/// exp, log, sin, cos, tanh, erf or sigmoid of an f32 or f64 expression: a polynomial for f32, the C
/// library's function for f64. Special values as in C.
int elementary(Dag& dag, ScalarOp op, int x);
/// pow or rem (fmod) of f32 or f64 expressions.
int elementary_binary(Dag& dag, ScalarOp op, int x, int y);

}  // namespace millrace::codegen
