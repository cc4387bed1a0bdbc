#include "backend/cpu/codegen/dag.h"

#include <algorithm>
#include <bit>

#include <millrace/narrow_types.h>

#include "base/format.h"
#include "ir/scalar_ops.h"

namespace millrace::codegen {
namespace {

using Wide = __int128;

int64_t wrap_add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
int64_t wrap_mul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

Range clamp(Wide low, Wide high) {
  if (low < INT64_MIN || high > INT64_MAX) return {};
  return {static_cast<int64_t>(low), static_cast<int64_t>(high)};
}

void add_terms(std::vector<Term>& to, const std::vector<Term>& terms, int64_t factor) {
  for (const Term& term : terms) {
    const auto at =
        std::lower_bound(to.begin(), to.end(), term.id, [](const Term& a, int id) { return a.id < id; });
    const int64_t more = wrap_mul(term.coefficient, factor);
    if (at != to.end() && at->id == term.id) {
      at->coefficient = wrap_add(at->coefficient, more);
      if (at->coefficient == 0) to.erase(at);
    } else if (more != 0) {
      to.insert(at, {term.id, more});
    }
  }
}

Linear combine(const Linear& a, const Linear& b, int64_t factor) {
  Linear sum = a;
  sum.base = wrap_add(a.base, wrap_mul(b.base, factor));
  add_terms(sum.dims, b.dims, factor);
  add_terms(sum.atoms, b.atoms, factor);
  return sum;
}

/// Wraps an integer to the width of a dtype.
int64_t wrap_to(DType dtype, int64_t value) {
  if (dtype.is_bool()) return value != 0;
  const int spare = 64 - dtype.bits;
  const uint64_t bits = static_cast<uint64_t>(value) << spare;
  return dtype.kind == Kind::signed_int ? static_cast<int64_t>(bits) >> spare
                                        : static_cast<int64_t>(bits >> spare);
}

}  // namespace

int64_t Linear::of_dim(int dim) const {
  for (const Term& term : dims)
    if (term.id == dim) return term.coefficient;
  return 0;
}

std::string text_of(const Expr& e) {
  std::string text =
      fmt::format("{} {} {} {}", static_cast<int>(e.kind), static_cast<int>(e.op), e.dtype.name(), e.bits);
  if (e.kind == ExprKind::load || e.kind == ExprKind::round_to || e.kind == ExprKind::bitcast)
    text += " " + e.memory.name();
  for (const int arg : e.args) text += fmt::format(" {}", arg);
  if (e.kind == ExprKind::linear) {
    text += fmt::format(" {}", e.linear.base);
    for (const Term& t : e.linear.dims) text += fmt::format(" d{}*{}", t.id, t.coefficient);
    for (const Term& t : e.linear.atoms) text += fmt::format(" e{}*{}", t.id, t.coefficient);
  }
  return text + e.name;
}

Range Dag::range_of(const Linear& linear) const {
  Wide low = linear.base, high = linear.base;
  const auto add = [&](const Range& range, int64_t factor) {
    const Wide a = Wide{range.low} * factor, b = Wide{range.high} * factor;
    low += std::min(a, b);
    high += std::max(a, b);
  };
  for (const Term& t : linear.dims) add({0, sizes_[t.id] - 1}, t.coefficient);
  for (const Term& t : linear.atoms) add(exprs_[t.id].range, t.coefficient);
  return clamp(low, high);
}

Range Dag::range_of(const Expr& e) const {
  if (e.dtype != i64) return {};
  const auto range = [&](int i) { return exprs_[e.args[i]].range; };
  switch (e.kind) {
    case ExprKind::constant:
      return {e.bits, e.bits};
    case ExprKind::linear:
      return range_of(e.linear);
    case ExprKind::cast: {
      const DType from = exprs_[e.args[0]].dtype;
      if (from.is_bool()) return {0, 1};
      if (!from.is_int() || from.bits == 64) return {};
      if (from.kind == Kind::unsigned_int) return {0, (int64_t{1} << from.bits) - 1};
      return {-(int64_t{1} << (from.bits - 1)), (int64_t{1} << (from.bits - 1)) - 1};
    }
    case ExprKind::select:
      return {std::min(range(1).low, range(2).low), std::max(range(1).high, range(2).high)};
    case ExprKind::op:
      if (e.op == ScalarOp::min)
        return {std::min(range(0).low, range(1).low), std::min(range(0).high, range(1).high)};
      if (e.op == ScalarOp::max)
        return {std::max(range(0).low, range(1).low), std::max(range(0).high, range(1).high)};
      if ((e.op == ScalarOp::div || e.op == ScalarOp::rem) && range(0).low >= 0 && range(1).low > 0) {
        if (e.op == ScalarOp::div) return {range(0).low / range(1).high, range(0).high / range(1).low};
        return {0, std::min(range(0).high, range(1).high - 1)};
      }
      return {};
    default:
      return {};
  }
}

int Dag::intern(Expr expr) {
  std::string key = text_of(expr);
  const auto [at, fresh] = ids_.try_emplace(std::move(key), size());
  if (!fresh) return at->second;
  for (const int arg : expr.args) expr.depends |= exprs_[arg].depends;
  for (const Term& t : expr.linear.dims) expr.depends |= uint64_t{1} << t.id;
  for (const Term& t : expr.linear.atoms) expr.depends |= exprs_[t.id].depends;
  expr.range = range_of(expr);
  exprs_.push_back(std::move(expr));
  return size() - 1;
}

int Dag::constant(DType dtype, double value) {
  if (!is_real(dtype)) return integer(dtype, static_cast<int64_t>(value));
  if (dtype != f64) value = static_cast<float>(value);
  return intern({.dtype = dtype == f64 ? f64 : f32, .bits = std::bit_cast<int64_t>(value)});
}

int Dag::integer(DType dtype, int64_t value) {
  if (dtype.is_float()) return constant(dtype, static_cast<double>(value));
  return intern({.dtype = dtype, .bits = wrap_to(dtype, value)});
}

int Dag::dim(int d) { return linear({0, {{d, 1}}, {}}); }

int Dag::linear(Linear value) {
  std::erase_if(value.dims, [&](const Term& t) { return sizes_[t.id] == 1 || t.coefficient == 0; });
  std::sort(value.dims.begin(), value.dims.end(), [](const Term& a, const Term& b) { return a.id < b.id; });
  if (value.dims.empty() && value.atoms.empty()) return integer(i64, value.base);
  if (value.dims.empty() && value.base == 0 && value.atoms.size() == 1 && value.atoms[0].coefficient == 1)
    return value.atoms[0].id;
  return intern({.kind = ExprKind::linear, .dtype = i64, .linear = std::move(value)});
}

Linear Dag::to_linear(int id) const {
  const Expr& e = exprs_[id];
  if (e.kind == ExprKind::linear) return e.linear;
  if (e.kind == ExprKind::constant) return {e.bits, {}, {}};
  return {0, {}, {{id, 1}}};
}

int Dag::unary(ScalarOp op, int a) {
  const DType dtype = exprs_[a].dtype;
  if (op == ScalarOp::logical_not && is_constant(a)) return integer(boolean, exprs_[a].bits == 0);
  if (op == ScalarOp::neg && dtype == i64) return linear(combine({}, to_linear(a), -1));
  return intern({.kind = ExprKind::op, .op = op, .dtype = result_dtype(op, dtype), .args = {a}});
}

/// Simplifies division and remainder of a linear form by a positive constant: what the divisor divides is
/// taken out when the rest stays inside [0, divisor).
int Dag::divide(ScalarOp op, int a, int64_t divisor) {
  const Linear whole = to_linear(a);
  if (exprs_[a].range.low >= 0) {
    Linear quotient, rest;
    const auto split = [&](const std::vector<Term>& from, std::vector<Term>& divisible,
                           std::vector<Term>& other) {
      for (const Term& t : from) {
        if (t.coefficient % divisor == 0)
          divisible.push_back({t.id, t.coefficient / divisor});
        else
          other.push_back(t);
      }
    };
    split(whole.dims, quotient.dims, rest.dims);
    split(whole.atoms, quotient.atoms, rest.atoms);
    quotient.base = whole.base / divisor;
    rest.base = whole.base % divisor;
    if (range_of(rest).inside(0, divisor - 1)) return linear(op == ScalarOp::div ? quotient : rest);
    if (range_of(rest).low >= 0 && range_of(quotient).low >= 0 &&
        !(quotient.dims.empty() && quotient.atoms.empty())) {
      const int inner = divide(op, linear(rest), divisor);
      return op == ScalarOp::div ? binary(ScalarOp::add, linear(quotient), inner) : inner;
    }
  }
  return intern({.kind = ExprKind::op, .op = op, .dtype = i64, .args = {a, integer(i64, divisor)}});
}

int Dag::compare(ScalarOp op, int a, int b) {
  const Range d = range_of(combine(to_linear(a), to_linear(b), -1));
  const bool known = d.low != INT64_MIN || d.high != INT64_MAX;
  const auto answer = [&](bool always, bool never) {
    return !known ? -1 : always ? integer(boolean, 1) : never ? integer(boolean, 0) : -1;
  };
  switch (op) {
    case ScalarOp::less:
      return answer(d.high < 0, d.low >= 0);
    case ScalarOp::less_equal:
      return answer(d.high <= 0, d.low > 0);
    case ScalarOp::greater:
      return answer(d.low > 0, d.high <= 0);
    case ScalarOp::greater_equal:
      return answer(d.low >= 0, d.high < 0);
    case ScalarOp::equal:
      return answer(d.low == 0 && d.high == 0, d.low > 0 || d.high < 0);
    case ScalarOp::not_equal:
      return answer(d.low > 0 || d.high < 0, d.low == 0 && d.high == 0);
    default:
      return -1;
  }
}

/// Simplifications of 64-bit integers; −1 when there is none.
int Dag::binary_i64(ScalarOp op, int a, int b) {
  if (op == ScalarOp::add) return linear(combine(to_linear(a), to_linear(b), 1));
  if (op == ScalarOp::sub) return linear(combine(to_linear(a), to_linear(b), -1));
  if (op == ScalarOp::mul && (is_constant(a) || is_constant(b))) {
    if (is_constant(a)) std::swap(a, b);
    return linear(combine({}, to_linear(a), exprs_[b].bits));
  }
  if ((op == ScalarOp::div || op == ScalarOp::rem) && is_constant(b) && exprs_[b].bits > 0)
    return divide(op, a, exprs_[b].bits);
  if (op == ScalarOp::min || op == ScalarOp::max) {
    const Range d = range_of(combine(to_linear(a), to_linear(b), -1));
    if (d.high <= 0) return op == ScalarOp::min ? a : b;
    if (d.low >= 0) return op == ScalarOp::min ? b : a;
  }
  return is_comparison(op) ? compare(op, a, b) : -1;
}

int Dag::binary(ScalarOp op, int a, int b) {
  MILLRACE_CHECK(exprs_[a].dtype == exprs_[b].dtype, "operands of a scalar operation are {} and {}",
                 exprs_[a].dtype.name(), exprs_[b].dtype.name());
  if (exprs_[a].dtype == i64)
    if (const int simple = binary_i64(op, a, b); simple >= 0) return simple;
  if (op == ScalarOp::logical_and) {
    if (is_false(a) || is_true(b) || a == b) return a;
    if (is_true(a) || is_false(b)) return b;
  }
  if (op == ScalarOp::logical_or) {
    if (is_true(a) || is_false(b) || a == b) return a;
    if (is_false(a) || is_true(b)) return b;
  }
  const DType dtype = result_dtype(op, exprs_[a].dtype);
  return intern({.kind = ExprKind::op, .op = op, .dtype = dtype, .args = {a, b}});
}

int Dag::select(int condition, int if_true, int if_false) {
  if (is_true(condition) || if_true == if_false) return if_true;
  if (is_false(condition)) return if_false;
  const DType dtype = exprs_[if_true].dtype;
  return intern({.kind = ExprKind::select, .dtype = dtype, .args = {condition, if_true, if_false}});
}

int Dag::cast(int a, DType dtype) {
  const DType from = exprs_[a].dtype;
  if (is_real(dtype) && dtype.bits < 32) return round_to(cast(a, f32), dtype);
  if (from == dtype) return a;
  if (is_constant(a)) {
    if (!from.is_float() && !dtype.is_float()) return integer(dtype, exprs_[a].bits);
    if (from.is_float() && dtype.is_float()) return constant(dtype, std::bit_cast<double>(exprs_[a].bits));
  }
  return intern({.kind = ExprKind::cast, .dtype = dtype, .args = {a}});
}

int Dag::fma(int a, int b, int c) {
  return intern({.kind = ExprKind::fma, .dtype = exprs_[a].dtype, .args = {a, b, c}});
}

int Dag::scale(int a, int shifted) {
  return intern({.kind = ExprKind::scale, .dtype = f32, .args = {a, shifted}});
}

int Dag::bitcast(int a, DType from, DType dtype) {
  return intern({.kind = ExprKind::bitcast,
                 .dtype = is_real(dtype) && dtype.bits < 32 ? f32 : dtype,
                 .memory = from,
                 .args = {a},
                 .bits = static_cast<int64_t>(dtype.kind) << 8 | dtype.bits});
}

int Dag::round_to(int a, DType dtype) {
  return intern({.kind = ExprKind::round_to, .dtype = f32, .memory = dtype, .args = {a}});
}

int Dag::call(const std::string& name, std::vector<int> args) {
  const DType dtype = exprs_[args[0]].dtype;
  return intern({.kind = ExprKind::call, .dtype = dtype, .args = std::move(args), .name = name});
}

int Dag::load(int buffer, DType memory, int offset, int predicate) {
  const DType dtype = is_real(memory) && memory.bits < 32 ? f32 : memory;
  if (predicate >= 0 && is_false(predicate)) return integer(dtype, 0);
  std::vector<int> args = {offset};
  if (predicate >= 0 && !is_true(predicate)) args.push_back(predicate);
  return intern(
      {.kind = ExprKind::load, .dtype = dtype, .memory = memory, .args = std::move(args), .bits = buffer});
}

void Dag::copy(const Dag& from, Dag& to, std::span<int* const> roots,
               const std::function<int(Dag& to, const Linear& dims_only)>& map) {
  std::vector<char> needed(from.size());
  for (const int* root : roots) needed[*root] = 1;
  for (int id = from.size() - 1; id >= 0; --id) {
    if (!needed[id]) continue;
    for (const int arg : from[id].args) needed[arg] = 1;
    for (const Term& t : from[id].linear.atoms) needed[t.id] = 1;
  }
  std::vector<int> ids(from.size(), -1);
  for (int id = 0; id < from.size(); ++id) {
    if (!needed[id]) continue;
    Expr e = from[id];
    if (e.kind == ExprKind::linear) {
      // Dimensions are mapped together (merged dimensions cancel), atoms one by one.
      Linear sum = to.to_linear(map(to, {e.linear.base, e.linear.dims, {}}));
      for (const Term& t : e.linear.atoms) sum = combine(sum, to.to_linear(ids[t.id]), t.coefficient);
      ids[id] = to.linear(std::move(sum));
      continue;
    }
    for (int& arg : e.args) arg = ids[arg];
    // Through the simplifying constructors: new dimensions may decide what the old ones left open.
    switch (e.kind) {
      case ExprKind::op:
        ids[id] = e.args.size() == 1 ? to.unary(e.op, e.args[0]) : to.binary(e.op, e.args[0], e.args[1]);
        break;
      case ExprKind::select:
        ids[id] = to.select(e.args[0], e.args[1], e.args[2]);
        break;
      case ExprKind::load:
        ids[id] = to.load(static_cast<int>(e.bits), e.memory, e.args[0], e.args.size() > 1 ? e.args[1] : -1);
        break;
      default:
        e.depends = 0;
        ids[id] = to.intern(std::move(e));
    }
  }
  for (int* root : roots) *root = ids[*root];
}

}  // namespace millrace::codegen
