#include "backend/ref/scalar.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include <millrace/narrow_types.h>

#include "backend/ref/index.h"
#include "base/format.h"
#include "ir/scalar_ops.h"
#include "ir/whole_numbers.h"

namespace millrace::ref {
namespace {

/// Cuts to the dtype's width; signed values are sign-extended back to 64 bits.
Cell whole_cell(DType dtype, uint64_t bits) {
  if (dtype.is_bool()) return {.u = bits != 0 ? uint64_t{1} : 0};
  return {.u = static_cast<uint64_t>(wrapped(dtype, static_cast<int64_t>(bits)))};
}

uint64_t zero_extended(DType dtype, uint64_t bits) {
  const int spare = dtype.is_bool() ? 63 : 64 - dtype.bits;
  return bits << spare >> spare;
}

double rounded(DType dtype, double value) {
  if (dtype == f64) return value;
  const auto single = static_cast<float>(value);
  if (dtype == f32) return single;
  if (is_narrow_float(dtype)) return narrow_to_float(dtype, float_to_narrow(dtype, single));
  return dtype == bf16 ? bf16_to_float(float_to_bf16(single)) : f16_to_float(float_to_f16(single));
}

[[noreturn]] void unsupported(ScalarOp op, DType dtype) {
  fail<InternalError>("scalar operation {} is not defined for {}", static_cast<int>(op), dtype.name());
}

double float_unary(ScalarOp op, double a, DType dtype) {
  switch (op) {
    case ScalarOp::neg:
      return -a;
    case ScalarOp::abs:
      return std::fabs(a);
    case ScalarOp::floor:
      return std::floor(a);
    case ScalarOp::ceil:
      return std::ceil(a);
    case ScalarOp::round_even:
      return std::nearbyint(a);
    case ScalarOp::trunc:
      return std::trunc(a);
    case ScalarOp::sqrt:
      return std::sqrt(a);
    case ScalarOp::exp:
      return std::exp(a);
    case ScalarOp::log:
      return std::log(a);
    case ScalarOp::sin:
      return std::sin(a);
    case ScalarOp::cos:
      return std::cos(a);
    case ScalarOp::tanh:
      return std::tanh(a);
    case ScalarOp::erf:
      return std::erf(a);
    case ScalarOp::sigmoid:
      return 1 / (1 + std::exp(-a));
    default:
      unsupported(op, dtype);
  }
}

double float_binary(ScalarOp op, double a, double b, DType dtype) {
  switch (op) {
    case ScalarOp::add:
      return a + b;
    case ScalarOp::sub:
      return a - b;
    case ScalarOp::mul:
      return a * b;
    case ScalarOp::div:
      return a / b;
    case ScalarOp::rem:
      return std::fmod(a, b);
    case ScalarOp::min:
      return std::isnan(a) || std::isnan(b) ? std::numeric_limits<double>::quiet_NaN() : std::min(a, b);
    case ScalarOp::max:
      return std::isnan(a) || std::isnan(b) ? std::numeric_limits<double>::quiet_NaN() : std::max(a, b);
    case ScalarOp::pow:
      return std::pow(a, b);
    default:
      unsupported(op, dtype);
  }
}

uint64_t divided(DType dtype, uint64_t a, uint64_t b, bool remainder) {
  if (b == 0) return 0;
  if (dtype.kind != Kind::signed_int) return remainder ? a % b : a / b;
  const auto x = static_cast<int64_t>(a), y = static_cast<int64_t>(b);
  if (y == -1) return remainder ? 0 : 0 - a;  // the one overflow wraps
  return static_cast<uint64_t>(remainder ? x % y : x / y);
}

uint64_t int_binary(ScalarOp op, uint64_t a, uint64_t b, DType dtype) {
  const bool is_signed = dtype.kind == Kind::signed_int;
  const auto less = [&](uint64_t x, uint64_t y) {
    return is_signed ? static_cast<int64_t>(x) < static_cast<int64_t>(y) : x < y;
  };
  switch (op) {
    case ScalarOp::add:
      return a + b;
    case ScalarOp::sub:
      return a - b;
    case ScalarOp::mul:
      return a * b;
    case ScalarOp::div:
      return divided(dtype, a, b, false);
    case ScalarOp::rem:
      return divided(dtype, a, b, true);
    case ScalarOp::min:
      return less(b, a) ? b : a;
    case ScalarOp::max:
      return less(a, b) ? b : a;
    case ScalarOp::bit_and:
      return a & b;
    case ScalarOp::bit_or:
      return a | b;
    case ScalarOp::bit_xor:
      return a ^ b;
    case ScalarOp::shift_left:
      return b >= dtype.bits ? 0 : a << b;
    case ScalarOp::shift_right:
      return b >= dtype.bits ? 0 : zero_extended(dtype, a) >> b;
    default:
      unsupported(op, dtype);
  }
}

template <typename T>
bool compared(ScalarOp op, T a, T b) {
  switch (op) {
    case ScalarOp::equal:
      return a == b;
    case ScalarOp::not_equal:
      return a != b;
    case ScalarOp::less:
      return a < b;
    case ScalarOp::less_equal:
      return a <= b;
    case ScalarOp::greater:
      return a > b;
    default:
      return a >= b;
  }
}

/// Calls with(load), load(i) being element i.
template <typename With>
void with_loads(const Array& array, With&& with) {
  if (array.dtype() == f32)
    with([from = array.as<float>().data()](int64_t i) { return Cell{.f = from[i]}; });
  else if (is_real(array.dtype()))
    with([&](int64_t i) { return Cell{.f = array.at(i)}; });
  else
    with([&](int64_t i) { return Cell{.u = static_cast<uint64_t>(array.int_at(i))}; });
}

/// Calls with(compute), compute(a, b) being the operation's result.
template <typename With>
void with_binary(ScalarOp op, DType dtype, With&& with) {
  if (is_real(dtype) && op == ScalarOp::add) return with([](Cell a, Cell b) { return Cell{.f = a.f + b.f}; });
  if (is_real(dtype) && op == ScalarOp::sub) return with([](Cell a, Cell b) { return Cell{.f = a.f - b.f}; });
  if (is_real(dtype) && op == ScalarOp::mul) return with([](Cell a, Cell b) { return Cell{.f = a.f * b.f}; });
  with([=](Cell a, Cell b) { return apply_binary(op, dtype, a, b); });
}

void store_cells(Array& array, int64_t begin, std::span<const Cell> values) {
  if (array.dtype() == f32)
    return array.edit<float>([&](std::span<float> to) {
      for (const Cell value : values) to[static_cast<size_t>(begin++)] = static_cast<float>(value.f);
    });
  const bool real = is_real(array.dtype());
  for (const Cell value : values)
    if (real)
      array.set(begin++, value.f);
    else
      array.set_int(begin++, static_cast<int64_t>(value.u));
}

Cell constant_cell(DType dtype, double value) {
  if (is_real(dtype)) return {.f = value};
  if (dtype.is_bool()) return {.u = value != 0 ? uint64_t{1} : 0};
  return {.u = static_cast<uint64_t>(saturated(dtype, value))};
}

/// The same bits as another dtype of the same width.
Cell apply_bitcast(DType from, DType to, Cell a) {
  uint64_t bits = zero_extended(from, a.u);
  if (is_real(from)) {
    Array one(from, Shape{});
    one.set(0, a.f);
    bits = 0;
    std::memcpy(&bits, one.data(), static_cast<size_t>(from.bytes()));
  }
  if (!is_real(to)) return whole_cell(to, bits);
  Array one(to, Shape{});
  std::memcpy(one.data(), &bits, static_cast<size_t>(to.bytes()));
  return {.f = one.at(0)};
}

}  // namespace

Cell integer_cell(DType dtype, int64_t value) {
  if (is_real(dtype)) return {.f = static_cast<double>(value)};
  return whole_cell(dtype, static_cast<uint64_t>(value));
}

Cell apply_unary(ScalarOp op, DType dtype, Cell a) {
  if (is_real(dtype)) return {.f = float_unary(op, a.f, dtype)};
  switch (op) {
    case ScalarOp::logical_not:
      return {.u = a.u == 0 ? uint64_t{1} : 0};
    case ScalarOp::bit_not:
      return whole_cell(dtype, ~a.u);
    case ScalarOp::neg:
      return whole_cell(dtype, 0 - a.u);
    case ScalarOp::abs:
      return whole_cell(dtype,
                        dtype.kind == Kind::signed_int && static_cast<int64_t>(a.u) < 0 ? 0 - a.u : a.u);
    default:
      unsupported(op, dtype);
  }
}

Cell apply_binary(ScalarOp op, DType dtype, Cell a, Cell b) {
  if (is_comparison(op)) {
    bool holds;
    if (is_real(dtype))
      holds = compared(op, a.f, b.f);
    else if (dtype.kind == Kind::signed_int)
      holds = compared(op, static_cast<int64_t>(a.u), static_cast<int64_t>(b.u));
    else
      holds = compared(op, a.u, b.u);
    return {.u = holds ? uint64_t{1} : 0};
  }
  if (op == ScalarOp::logical_and) return {.u = a.u & b.u};
  if (op == ScalarOp::logical_or) return {.u = a.u | b.u};
  if (is_real(dtype)) return {.f = float_binary(op, a.f, b.f, dtype)};
  return whole_cell(dtype, int_binary(op, a.u, b.u, dtype));
}

Cell apply_cast(DType from, DType to, Cell a) {
  if (is_real(from)) {
    if (is_real(to)) return {.f = rounded(to, a.f)};
    if (to.is_bool()) return {.u = a.f != 0 ? uint64_t{1} : 0};
    return {.u = static_cast<uint64_t>(saturated(to, a.f))};
  }
  if (!is_real(to)) return whole_cell(to, a.u);
  const double value = from.kind == Kind::signed_int ? static_cast<double>(static_cast<int64_t>(a.u))
                                                     : static_cast<double>(a.u);
  return {.f = rounded(to, value)};
}

Scalar ScalarTape::append(Step step) {
  steps_.push_back(std::move(step));
  return {static_cast<int>(steps_.size()) - 1};
}

Scalar ScalarTape::operand(int k) {
  return append({.what = What::operand, .dtype = operands_[k].dtype(), .a = k});
}

Scalar ScalarTape::position(int axis) { return append({.what = What::position, .dtype = i64, .a = axis}); }

Scalar ScalarTape::constant(DType dtype, double value) {
  return append({.what = What::constant, .dtype = dtype, .value = constant_cell(dtype, value)});
}

Scalar ScalarTape::integer(DType dtype, int64_t value) {
  return append({.what = What::constant, .dtype = dtype, .value = integer_cell(dtype, value)});
}

Scalar ScalarTape::unary(ScalarOp op, Scalar a) {
  return append({.what = What::unary, .dtype = dtype(a), .op = op, .a = a.id});
}

Scalar ScalarTape::binary(ScalarOp op, Scalar a, Scalar b) {
  MILLRACE_CHECK(dtype(a) == dtype(b), "scalar operation {} on {} and {}", static_cast<int>(op),
                 dtype(a).name(), dtype(b).name());
  MILLRACE_CHECK(!is_logic(op) || dtype(a).is_bool(), "logic on {}", dtype(a).name());
  return append({.what = What::binary, .dtype = result_dtype(op, dtype(a)), .op = op, .a = a.id, .b = b.id});
}

Scalar ScalarTape::select(Scalar condition, Scalar if_true, Scalar if_false) {
  MILLRACE_CHECK(dtype(condition).is_bool() && dtype(if_true) == dtype(if_false),
                 "select between {} and {} on {}", dtype(if_true).name(), dtype(if_false).name(),
                 dtype(condition).name());
  return append(
      {.what = What::select, .dtype = dtype(if_true), .a = condition.id, .b = if_true.id, .c = if_false.id});
}

Scalar ScalarTape::cast(Scalar a, DType to) { return append({.what = What::cast, .dtype = to, .a = a.id}); }

Scalar ScalarTape::bitcast(Scalar a, DType to) {
  MILLRACE_CHECK(dtype(a).bits == to.bits, "the bits of {} as {}", dtype(a).name(), to.name());
  return append({.what = What::bitcast, .dtype = to, .a = a.id});
}

Scalar ScalarTape::load_if(Scalar condition, int operand, std::span<const Scalar> index, Scalar otherwise) {
  const Type& type = operands_[operand].type();
  MILLRACE_CHECK(index.size() == type.shape.size(), "a load with {} indices from {}", index.size(),
                 type.str());
  MILLRACE_CHECK(condition.id < 0 || (dtype(condition).is_bool() && dtype(otherwise) == type.dtype),
                 "a load from {}, or what is of another dtype", type.str());
  Step step{.what = What::load, .dtype = type.dtype, .a = operand, .b = condition.id, .c = otherwise.id};
  for (const Scalar at : index) {
    MILLRACE_CHECK(dtype(at) == i64, "an index of dtype {}", dtype(at).name());
    step.index.push_back(at.id);
  }
  return append(std::move(step));
}

/// Of a load in its operand, for element i of the block.
int64_t ScalarTape::place(const Step& step, const Block& block, int64_t i) const {
  const Type& type = operands_[step.a].type();
  int64_t flat = 0;
  for (size_t d = 0; d < step.index.size(); ++d) {
    const int64_t size = type.shape[d].size(), at = static_cast<int64_t>(block.of(step.index[d])[i].u);
    MILLRACE_CHECK(at >= 0 && at < size, "a load at {} along axis {} of {}", at, d, type.str());
    flat = flat * size + at;
  }
  return flat;
}

void ScalarTape::fill(const Step& step, const Block& block, Cell* to) const {
  const auto each = [&](auto&& cell) {
    for (int64_t i = 0; i < block.count; ++i) to[i] = cell(i);
  };
  switch (step.what) {
    case What::operand:
      return with_loads(operands_[step.a],
                        [&](auto load) { each([&](int64_t i) { return load(block.begin + i); }); });
    case What::position:
      return each([&, stride = block.strides[step.a], size = block.sizes[step.a]](int64_t i) {
        return Cell{.u = static_cast<uint64_t>((block.begin + i) / stride % size)};
      });
    case What::load:
      return with_loads(operands_[step.a], [&](auto load) {
        each([&](int64_t i) {
          if (step.b >= 0 && block.of(step.b)[i].u == 0) return block.of(step.c)[i];
          return load(place(step, block, i));
        });
      });
    case What::constant:
      return each([&](int64_t) { return step.value; });
    case What::unary:
      return each([&, dtype = steps_[step.a].dtype, a = block.of(step.a)](int64_t i) {
        return apply_unary(step.op, dtype, a[i]);
      });
    case What::binary:
      return with_binary(step.op, steps_[step.a].dtype, [&](auto compute) {
        each([&, a = block.of(step.a), b = block.of(step.b)](int64_t i) { return compute(a[i], b[i]); });
      });
    case What::select:
      return each([a = block.of(step.a), b = block.of(step.b), c = block.of(step.c)](int64_t i) {
        return a[i].u ? b[i] : c[i];
      });
    case What::cast:
      return each([&, from = steps_[step.a].dtype, a = block.of(step.a)](int64_t i) {
        return apply_cast(from, step.dtype, a[i]);
      });
    case What::bitcast:
      return each([&, from = steps_[step.a].dtype, a = block.of(step.a)](int64_t i) {
        return apply_bitcast(from, step.dtype, a[i]);
      });
  }
}

void ScalarTape::run(Scalar result, Array& out) const {
  const std::vector<int64_t> sizes = out.shape().sizes(), stride = strides(sizes);
  const int64_t most = std::min<int64_t>(out.count(), 64);
  std::vector<Cell> cells(steps_.size() * static_cast<size_t>(most));
  for (int64_t begin = 0; begin < out.count(); begin += most) {
    const Block block{begin, std::min(most, out.count() - begin), most, cells.data(), sizes, stride};
    for (size_t s = 0; s < steps_.size(); ++s)
      fill(steps_[s], block, cells.data() + s * static_cast<size_t>(most));
    store_cells(out, begin, {block.of(result.id), static_cast<size_t>(block.count)});
  }
}

}  // namespace millrace::ref
