#include "backend/cpu/codegen/emit_ops.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include <millrace/narrow_types.h>

#include "backend/cpu/codegen/dag.h"
#include "base/cpu.h"
#include "base/format.h"
#include "ir/narrow_float.h"
#include "llvm/Analysis/VectorUtils.h"
#include "llvm/IR/IntrinsicsX86.h"

namespace millrace::codegen {
namespace {

using llvm::Value;

bool is_unsigned(DType dtype) { return dtype.kind == Kind::unsigned_int || dtype.is_bool(); }

Value* intrinsic(Builder& b, llvm::Intrinsic::ID id, Value* x) { return b.CreateUnaryIntrinsic(id, x); }

llvm::Constant* integer(Value* like, int64_t value) {
  return llvm::ConstantInt::get(like->getType(), static_cast<uint64_t>(value), true);
}

/// NaN when one is NaN.
Value* float_extreme(Builder& b, bool max, Value* x, Value* y) {
  Value* picked =
      b.CreateSelect(max ? b.CreateFCmpOGT(x, y) : b.CreateFCmpOLT(x, y), x, y);  // y when unordered
  return b.CreateSelect(b.CreateFCmpUNO(x, x), x, picked);
}

/// Truncates; x / 0 is 0 and the one overflow wraps, so that no lane can trap.
Value* integer_divide(Builder& b, bool remainder, DType dtype, Value* x, Value* y) {
  Value* zero = integer(y, 0);
  Value* is_zero = b.CreateICmpEQ(y, zero);
  if (is_unsigned(dtype)) {
    Value* safe = b.CreateSelect(is_zero, integer(y, 1), y);
    return b.CreateSelect(is_zero, zero, remainder ? b.CreateURem(x, safe) : b.CreateUDiv(x, safe));
  }
  Value* is_minus_one = b.CreateICmpEQ(y, integer(y, -1));
  Value* safe = b.CreateSelect(b.CreateOr(is_zero, is_minus_one), integer(y, 1), y);
  Value* result = remainder ? b.CreateSRem(x, safe) : b.CreateSDiv(x, safe);
  result = b.CreateSelect(is_minus_one, remainder ? zero : b.CreateNeg(x), result);
  return b.CreateSelect(is_zero, zero, result);
}

/// Logical; amounts of the width and above give 0.
Value* shift(Builder& b, bool left, DType dtype, Value* x, Value* y) {
  Value* inside = b.CreateICmpULT(y, integer(y, dtype.bits));
  Value* amount = b.CreateSelect(inside, y, integer(y, 0));
  Value* shifted = left ? b.CreateShl(x, amount) : b.CreateLShr(x, amount);
  if (const auto* known = llvm::dyn_cast<llvm::Constant>(inside); known && known->isAllOnesValue())
    return shifted;
  return b.CreateSelect(inside, shifted, integer(x, 0));
}

Value* compare(Builder& b, ScalarOp op, DType dtype, Value* x, Value* y) {
  using P = llvm::CmpInst::Predicate;
  const bool f = dtype.is_float(), u = is_unsigned(dtype);
  switch (op) {
    case ScalarOp::equal:
      return b.CreateCmp(f ? P::FCMP_OEQ : P::ICMP_EQ, x, y);
    case ScalarOp::not_equal:
      return b.CreateCmp(f ? P::FCMP_UNE : P::ICMP_NE, x, y);
    case ScalarOp::less:
      return b.CreateCmp(f ? P::FCMP_OLT : u ? P::ICMP_ULT : P::ICMP_SLT, x, y);
    case ScalarOp::less_equal:
      return b.CreateCmp(f ? P::FCMP_OLE : u ? P::ICMP_ULE : P::ICMP_SLE, x, y);
    case ScalarOp::greater:
      return b.CreateCmp(f ? P::FCMP_OGT : u ? P::ICMP_UGT : P::ICMP_SGT, x, y);
    default:
      return b.CreateCmp(f ? P::FCMP_OGE : u ? P::ICMP_UGE : P::ICMP_SGE, x, y);
  }
}

bool rounds_to_bf16() {
  static const bool has = cpu_has("avx512_bf16");
  return has;
}

/// The upper 16 bits of an f32 hold a bf16: round to nearest even there; NaNs stay NaNs.
Value* bf16_bits(Builder& b, Value* x) {
  Value* bits = b.CreateBitCast(x, shaped(b.getInt32Ty(), x->getType()));
  Value* odd = b.CreateAnd(b.CreateLShr(bits, 16), integer(bits, 1));
  Value* rounded = b.CreateAdd(b.CreateAdd(bits, integer(bits, 0x7FFF)), odd);
  Value* nan = b.CreateOr(bits, integer(bits, 0x400000));
  return b.CreateLShr(b.CreateSelect(b.CreateFCmpUNO(x, x), nan, rounded), 16);
}

/// f32 as the code of a float of 8 bits or less, in 32 bits (float_to_narrow() in LLVM's words).
Value* narrow_code(Builder& b, Value* x, DType dtype) {
  namespace I = llvm::Intrinsic;
  const NarrowFloat f = narrow_float(dtype);
  Value* bits = b.CreateBitCast(x, shaped(b.getInt32Ty(), x->getType()));
  const auto i = [&](uint32_t value) { return integer(bits, value); };
  Value* magnitude = b.CreateAnd(bits, 0x7FFFFFFF);
  const auto least = [&](Value* a, uint32_t limit) { return b.CreateBinaryIntrinsic(I::umin, a, i(limit)); };
  if (dtype == f8e8m0) {
    Value* rest = b.CreateZExt(b.CreateICmpNE(b.CreateAnd(bits, 0x7FFFFF), i(0)), bits->getType());
    Value* up = least(b.CreateAdd(b.CreateLShr(magnitude, 23), rest), f.largest);
    up = b.CreateSelect(b.CreateICmpULE(magnitude, i(0x00400000)), i(0), up);  // 2^−127 and less
    return b.CreateSelect(b.CreateICmpUGE(magnitude, i(0x7F800000)), i(f.nan), up);
  }
  const auto shift = static_cast<unsigned>(23 - f.mantissa);
  Value* scaled = b.CreateFMul(b.CreateBitCast(magnitude, x->getType()),
                               llvm::ConstantFP::get(x->getType(), std::ldexp(1.0, f.bias - 1 + f.mantissa)));
  Value* below =
      b.CreateIntrinsic(I::fptoui_sat, {bits->getType(), x->getType()}, {intrinsic(b, I::roundeven, scaled)});
  Value* even = b.CreateAnd(b.CreateLShr(magnitude, shift), 1);
  Value* normal =
      b.CreateSub(b.CreateLShr(b.CreateAdd(b.CreateAdd(magnitude, i((1U << (shift - 1)) - 1)), even), shift),
                  i(static_cast<uint32_t>(127 - f.bias) << f.mantissa));
  Value* small = b.CreateICmpULT(magnitude, i(static_cast<uint32_t>(128 - f.bias) << 23));
  Value* code = least(b.CreateSelect(small, below, normal), f.largest);
  if (f.infinity != 0) code = b.CreateSelect(b.CreateICmpEQ(magnitude, i(0x7F800000)), i(f.infinity), code);
  Value* sign = b.CreateShl(b.CreateLShr(bits, 31), static_cast<uint64_t>(f.exponent + f.mantissa));
  if (f.one_zero) sign = b.CreateSelect(b.CreateICmpEQ(code, i(0)), i(0), sign);
  return b.CreateSelect(b.CreateFCmpUNO(x, x), i(f.nan), b.CreateOr(code, sign));
}

/// The reverse (narrow_to_float()).
Value* narrow_value(Builder& b, Value* code8, DType dtype) {
  const NarrowFloat f = narrow_float(dtype);
  llvm::Type* float_type = shaped(b.getFloatTy(), code8->getType());
  Value* all = b.CreateZExt(code8, shaped(b.getInt32Ty(), code8->getType()));
  const auto i = [&](uint32_t value) { return integer(all, value); };
  constexpr uint32_t nan = 0x7FC00000, infinity = 0x7F800000;
  if (dtype == f8e8m0) {
    Value* power = b.CreateSelect(b.CreateICmpEQ(all, i(0)), i(0x00400000), b.CreateShl(all, 23));
    return b.CreateBitCast(b.CreateSelect(b.CreateICmpEQ(all, i(f.nan)), i(nan), power), float_type);
  }
  const int width = f.exponent + f.mantissa;
  Value* code = b.CreateAnd(all, (1U << width) - 1);
  Value* sign = b.CreateShl(b.CreateLShr(all, static_cast<uint64_t>(width)), 31);
  Value* below = b.CreateFMul(b.CreateUIToFP(code, float_type),
                              llvm::ConstantFP::get(float_type, std::ldexp(1.0, 1 - f.bias - f.mantissa)));
  Value* normal = b.CreateAdd(b.CreateShl(code, static_cast<uint64_t>(23 - f.mantissa)),
                              i(static_cast<uint32_t>(127 - f.bias) << 23));
  Value* bits = b.CreateSelect(b.CreateICmpULT(code, i(1U << f.mantissa)),
                               b.CreateBitCast(below, all->getType()), normal);
  if (f.one_zero)
    return b.CreateBitCast(b.CreateSelect(b.CreateICmpEQ(all, i(f.nan)), i(nan), b.CreateOr(bits, sign)),
                           float_type);
  if (f.largest < (1U << width) - 1) {
    Value* special = i(nan);
    if (f.infinity != 0) special = b.CreateSelect(b.CreateICmpEQ(code, i(f.infinity)), i(infinity), special);
    bits = b.CreateSelect(b.CreateICmpUGT(code, i(f.largest)), special, bits);
  }
  return b.CreateBitCast(b.CreateOr(bits, sign), float_type);
}

bool below_a_byte(DType dtype) { return dtype.is_int() && dtype.bits < 8; }

}  // namespace

llvm::Type* scalar_type(llvm::LLVMContext& context, DType dtype, bool in_memory) {
  if (in_memory && dtype == bf16) return llvm::Type::getInt16Ty(context);
  if (in_memory && dtype == f16) return llvm::Type::getHalfTy(context);
  if (in_memory && (is_narrow_float(dtype) || below_a_byte(dtype))) return llvm::Type::getInt8Ty(context);
  if (dtype == f64) return llvm::Type::getDoubleTy(context);
  if (is_real(dtype)) return llvm::Type::getFloatTy(context);
  if (dtype.is_bool()) return in_memory ? llvm::Type::getInt8Ty(context) : llvm::Type::getInt1Ty(context);
  return llvm::Type::getIntNTy(context, dtype.bits);
}

llvm::Type* shaped(llvm::Type* scalar, llvm::Type* like) {
  if (const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(like))
    return llvm::FixedVectorType::get(scalar, vector->getNumElements());
  return scalar;
}

Value* emit_unary(Builder& b, ScalarOp op, DType dtype, Value* x) {
  namespace I = llvm::Intrinsic;
  switch (op) {
    case ScalarOp::neg:
      return dtype.is_float() ? b.CreateFNeg(x) : b.CreateNeg(x);
    case ScalarOp::abs:
      if (dtype.is_float()) return intrinsic(b, I::fabs, x);
      return is_unsigned(dtype) ? x : b.CreateBinaryIntrinsic(I::abs, x, b.getFalse());
    case ScalarOp::logical_not:
    case ScalarOp::bit_not:
      return b.CreateNot(x);
    default:
      break;
  }
  if (!dtype.is_float()) return x;  // rounding integers
  switch (op) {
    case ScalarOp::floor:
      return intrinsic(b, I::floor, x);
    case ScalarOp::ceil:
      return intrinsic(b, I::ceil, x);
    case ScalarOp::trunc:
      return intrinsic(b, I::trunc, x);
    case ScalarOp::round_even:
      return intrinsic(b, I::roundeven, x);
    case ScalarOp::sqrt:
      return intrinsic(b, I::sqrt, x);
    default:
      fail<InternalError>("no code for unary operation {}", static_cast<int>(op));
  }
}

Value* emit_binary(Builder& b, ScalarOp op, DType dtype, Value* x, Value* y) {
  namespace I = llvm::Intrinsic;
  const bool f = dtype.is_float(), u = is_unsigned(dtype);
  switch (op) {
    case ScalarOp::add:
      return f ? b.CreateFAdd(x, y) : b.CreateAdd(x, y);
    case ScalarOp::sub:
      return f ? b.CreateFSub(x, y) : b.CreateSub(x, y);
    case ScalarOp::mul:
      return f ? b.CreateFMul(x, y) : b.CreateMul(x, y);
    case ScalarOp::div:
      return f ? b.CreateFDiv(x, y) : integer_divide(b, false, dtype, x, y);
    case ScalarOp::rem:
      return integer_divide(b, true, dtype, x, y);
    case ScalarOp::min:
      return f ? float_extreme(b, false, x, y) : b.CreateBinaryIntrinsic(u ? I::umin : I::smin, x, y);
    case ScalarOp::max:
      return f ? float_extreme(b, true, x, y) : b.CreateBinaryIntrinsic(u ? I::umax : I::smax, x, y);
    case ScalarOp::bit_and:
    case ScalarOp::logical_and:
      return b.CreateAnd(x, y);
    case ScalarOp::bit_or:
    case ScalarOp::logical_or:
      return b.CreateOr(x, y);
    case ScalarOp::bit_xor:
      return b.CreateXor(x, y);
    case ScalarOp::shift_left:
      return shift(b, true, dtype, x, y);
    case ScalarOp::shift_right:
      return shift(b, false, dtype, x, y);
    default:
      return compare(b, op, dtype, x, y);
  }
}

Value* emit_cast(Builder& b, Value* x, DType from, DType to) {
  llvm::Type* type = shaped(scalar_type(b.getContext(), to), x->getType());
  if (from == to) return x;
  if (to.is_bool())
    return from.is_float() ? b.CreateFCmpUNE(x, llvm::Constant::getNullValue(x->getType()))
                           : b.CreateICmpNE(x, llvm::Constant::getNullValue(x->getType()));
  if (from.is_float() && to.is_float()) return b.CreateFPCast(x, type);
  if (from.is_float())
    return b.CreateIntrinsic(is_unsigned(to) ? llvm::Intrinsic::fptoui_sat : llvm::Intrinsic::fptosi_sat,
                             {type, x->getType()}, {x});
  if (to.is_float()) return is_unsigned(from) ? b.CreateUIToFP(x, type) : b.CreateSIToFP(x, type);
  return b.CreateIntCast(x, type, !is_unsigned(from));
}

Value* scale(Builder& b, Value* x, Value* shifted) {
#if defined(__x86_64__)
  static const bool has = cpu_has("avx512f");
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  if (const unsigned lanes = vector ? vector->getNumElements() : 0; has && lanes >= 16 && lanes % 16 == 0) {
    // One instruction, of 16 lanes.
    Value* k = b.CreateFSub(shifted, llvm::ConstantFP::get(shifted->getType(), kRoundingShift));
    std::vector<Value*> parts;
    for (unsigned from = 0; from < lanes; from += 16) {
      std::vector<int> mask(16);
      std::iota(mask.begin(), mask.end(), static_cast<int>(from));
      Value *part = b.CreateShuffleVector(x, mask), *by = b.CreateShuffleVector(k, mask);
      constexpr int kCurrentRounding = 4;
      parts.push_back(b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_scalef_ps_512, {},
                                        {part, by, llvm::Constant::getNullValue(part->getType()),
                                         b.getInt16(0xFFFF), b.getInt32(kCurrentRounding)}));
    }
    return parts.size() > 1 ? llvm::concatenateVectors(b, parts) : parts[0];
  }
#endif
  // In two steps, so that subnormal results come out right. The low bits hold k, and half of it; what stands
  // above them leaves to the left, and what a NaN has there does not matter.
  Value* n = b.CreateBitCast(shifted, shaped(b.getInt32Ty(), x->getType()));
  Value* half = b.CreateAShr(n, 1);
  const auto power = [&](Value* e) {
    return b.CreateBitCast(b.CreateShl(b.CreateAdd(e, integer(e, 127)), 23), x->getType());
  };
  return b.CreateFMul(b.CreateFMul(x, power(half)), power(b.CreateSub(n, half)));
}

Value* from_memory(Builder& b, Value* x, DType memory) {
  if (memory == f16) return b.CreateFPExt(x, shaped(b.getFloatTy(), x->getType()));
  if (memory == bf16) {
    Value* bits = b.CreateShl(b.CreateZExt(x, shaped(b.getInt32Ty(), x->getType())), 16);
    return b.CreateBitCast(bits, shaped(b.getFloatTy(), x->getType()));
  }
  if (memory.is_bool()) return b.CreateICmpNE(x, integer(x, 0));
  if (is_narrow_float(memory)) return narrow_value(b, x, memory);
  if (below_a_byte(memory)) return b.CreateTrunc(x, shaped(b.getIntNTy(memory.bits), x->getType()));
  return x;
}

Value* to_memory(Builder& b, Value* x, DType memory) {
  if (memory == f16) return b.CreateFPTrunc(x, shaped(b.getHalfTy(), x->getType()));
  if (memory == bf16) {
    llvm::Type* bits = shaped(b.getInt16Ty(), x->getType());
    // One instruction; it takes subnormal numbers for 0.
    if (rounds_to_bf16() && x->getType()->isVectorTy())
      return b.CreateBitCast(b.CreateFPTrunc(x, shaped(b.getBFloatTy(), x->getType())), bits);
    return b.CreateTrunc(bf16_bits(b, x), bits);
  }
  if (memory.is_bool()) return b.CreateZExt(x, shaped(b.getInt8Ty(), x->getType()));
  if (is_narrow_float(memory))
    return b.CreateTrunc(narrow_code(b, x, memory), shaped(b.getInt8Ty(), x->getType()));
  if (below_a_byte(memory))
    return b.CreateIntCast(x, shaped(b.getInt8Ty(), x->getType()), memory.kind == Kind::signed_int);
  return x;
}

Value* round_to(Builder& b, Value* x, DType memory) {
  return from_memory(b, to_memory(b, x, memory), memory);
}

llvm::Constant* identity(llvm::Type* type, Reduction kind, DType dtype) {
  const bool low = kind == Reduction::max || kind == Reduction::argmax;
  if (kind == Reduction::sum || kind == Reduction::mean) return llvm::Constant::getNullValue(type);
  if (dtype.is_float()) return llvm::ConstantFP::getInfinity(type, low);
  const unsigned bits = type->getScalarSizeInBits();
  const llvm::APInt value =
      is_unsigned(dtype)
          ? (low ? llvm::APInt::getMinValue(bits) : llvm::APInt::getMaxValue(bits))
          : (low ? llvm::APInt::getSignedMinValue(bits) : llvm::APInt::getSignedMaxValue(bits));
  return llvm::ConstantInt::get(type, value);
}

Accumulator combine(Builder& b, Reduction kind, DType dtype, Accumulator x, Accumulator y) {
  switch (kind) {
    case Reduction::sum:
    case Reduction::mean:
      return {emit_binary(b, ScalarOp::add, dtype, x.value, y.value)};
    case Reduction::max:
      return {emit_binary(b, ScalarOp::max, dtype, x.value, y.value)};
    case Reduction::min:
      return {emit_binary(b, ScalarOp::min, dtype, x.value, y.value)};
    default:
      break;
  }
  // The better value wins, then the earlier position; the first NaN beats everything.
  Value* earlier = b.CreateICmpSLT(y.position, x.position);
  Value* better =
      emit_binary(b, kind == Reduction::argmax ? ScalarOp::greater : ScalarOp::less, dtype, y.value, x.value);
  Value* tie = b.CreateAnd(emit_binary(b, ScalarOp::equal, dtype, y.value, x.value), earlier);
  Value* take = b.CreateOr(better, tie);
  if (dtype.is_float()) {
    Value* x_number = b.CreateFCmpORD(x.value, x.value);
    Value* nan = b.CreateAnd(b.CreateFCmpUNO(y.value, y.value), b.CreateOr(x_number, earlier));
    take = b.CreateOr(take, nan);
  }
  return {b.CreateSelect(take, y.value, x.value), b.CreateSelect(take, y.position, x.position)};
}

}  // namespace millrace::codegen
