#include <bit>
#include <numeric>

#include "backend/cpu/codegen/emitter.h"
#include "base/cpu.h"
#include "base/format.h"
#include "llvm/Analysis/VectorUtils.h"
#include "llvm/IR/IntrinsicsX86.h"

namespace millrace::codegen {

using llvm::Value;
namespace {

/// Rows and columns whose numbers differ in bit `k` alone change places.
void swap_halves(Builder& b, Values& rows, int k) {
  const auto n = static_cast<int>(rows.size());
  std::vector<int> left, right;
  for (int c = 0; c < n; ++c) {
    left.push_back(c & k ? n + (c ^ k) : c);
    right.push_back(c & k ? n + c : c | k);
  }
  for (int i = 0; i < n; ++i) {
    if (i & k) continue;
    Value *const upper = rows[i], *const lower = rows[i + k];
    rows[i] = b.CreateShuffleVector(upper, lower, left);
    rows[i + k] = b.CreateShuffleVector(upper, lower, right);
  }
}

/// Transposes each square of `side` rows and columns where all CPUs interleave in one instruction: within 128
/// bits. Each round rotates the bits of (row, column) by one; after log2 side rounds they have changed
/// places.
void interleave(Builder& b, Values& rows, int side) {
  const auto n = static_cast<int>(rows.size());
  std::vector<int> low, high;
  for (int from = 0; from < n; from += side)
    for (int i = from; i < from + side / 2; ++i) {
      low.insert(low.end(), {i, n + i});
      high.insert(high.end(), {side / 2 + i, n + side / 2 + i});
    }
  for (int round = 1; round < side; round *= 2) {
    Values next;
    for (int from = 0; from < n; from += side)
      for (int i = from; i < from + side / 2; ++i)
        for (const std::vector<int>& half : {low, high})
          next.push_back(b.CreateShuffleVector(rows[i], rows[i + side / 2], half));
    rows = next;
  }
}

}  // namespace

int Emitter::level_of(uint64_t depends) const {
  int level = 0;
  for (int d = 0; d < nest_.rank(); ++d)
    if (depends >> d & 1) level = std::max(level, dim_level_[d]);
  return level;
}

/// Further instructions go to a level's block, before its way into inner blocks.
void Emitter::seek(int level) {
  llvm::BasicBlock* block = levels_[level].block;
  if (llvm::Instruction* end = block->getTerminator())
    b_.SetInsertPoint(end);
  else
    b_.SetInsertPoint(block);
}

/// An expression's value: a vector when it varies over the lanes, else a scalar.
Value* Emitter::value(int id) {
  const Expr& e = nest_.dag[id];
  return once(&Level::values, level_of(e.depends), id, [&] {
    for (const int arg : e.args)
      if (e.kind != ExprKind::load) value(arg);
    return compute(id);
  });
}

/// An expression's value in all lanes.
Value* Emitter::vector(int id) {
  Value* x = value(id);
  if (varies(id)) return x;
  return once(&Level::splats, level_of(nest_.dag[id].depends), id, [&] { return splat(x); });
}

Value* Emitter::compute(int id) {
  const Expr& e = nest_.dag[id];
  const bool wide = varies(id);
  const auto arg = [&](int i) { return wide ? vector(e.args[i]) : value(e.args[i]); };
  const auto type_of = [&](int i) { return nest_.dag[e.args[i]].dtype; };
  switch (e.kind) {
    case ExprKind::constant: {
      llvm::Type* type = scalar_type(context_, e.dtype);
      if (e.dtype.is_float()) return llvm::ConstantFP::get(type, std::bit_cast<double>(e.bits));
      return llvm::ConstantInt::get(type, static_cast<uint64_t>(e.bits), true);
    }
    case ExprKind::linear:
      if (!wide) return uniform_sum(e.linear, true);
      if (can_narrow(id)) return b_.CreateSExt(narrow(id), vector_type(b_.getInt64Ty()));
      return linear_vector(e.linear, b_.getInt64Ty());
    case ExprKind::load:
      return load(id);
    case ExprKind::select:
      return b_.CreateSelect(arg(0), arg(1), arg(2));
    case ExprKind::cast: {
      // Positions that fit 32 bits are converted from there.
      if (wide && type_of(0) == i64 && can_narrow(e.args[0]))
        return emit_cast(b_, narrow(e.args[0]), i32, e.dtype);
      return emit_cast(b_, arg(0), type_of(0), e.dtype);
    }
    case ExprKind::fma:
      return b_.CreateIntrinsic(llvm::Intrinsic::fma, {arg(0)->getType()}, {arg(0), arg(1), arg(2)});
    case ExprKind::scale:
      return scale(b_, arg(0), arg(1));
    case ExprKind::bitcast: {
      const DType to{static_cast<Kind>(e.bits >> 8), static_cast<uint8_t>(e.bits & 255)};
      Value* x = to_memory(b_, arg(0), e.memory);
      return from_memory(b_, b_.CreateBitCast(x, shaped(scalar_type(context_, to, true), x->getType())), to);
    }
    case ExprKind::round_to:
      return round_to(b_, arg(0), e.memory);
    case ExprKind::call:
      return call(e);
    case ExprKind::op:
      break;
  }
  if (e.args.size() == 1) return emit_unary(b_, e.op, type_of(0), arg(0));
  if (wide && type_of(0) == i64 && can_narrow(e.args[0]) && can_narrow(e.args[1])) {
    if (e.dtype.is_bool()) return emit_binary(b_, e.op, i32, narrow(e.args[0]), narrow(e.args[1]));
    if (can_narrow(id)) return b_.CreateSExt(narrow(id), vector_type(b_.getInt64Ty()));
  }
  // A position that is compared with a number that all lanes share (the classes of a row with its label).
  if (wide && type_of(0) == i64 && (e.op == ScalarOp::equal || e.op == ScalarOp::not_equal))
    for (const int side : {0, 1})
      if (const int position = e.args[side]; varies(position) && !varies(e.args[1 - side]) &&
                                             can_narrow(position) &&
                                             nest_.dag[position].range.low > INT32_MIN)
        return emit_binary(b_, e.op, i32, narrow(position),
                           narrow_or(e.args[1 - side], nest_.dag[position].range.low - 1));
  return emit_binary(b_, e.op, type_of(0), arg(0), arg(1));
}

/// True when an i64 expression can be computed in 32 bits: positions, mostly.
bool Emitter::can_narrow(int id) const {
  const Expr& e = nest_.dag[id];
  if (!e.range.inside(INT32_MIN, INT32_MAX)) return false;
  if (e.kind == ExprKind::constant || !varies(id)) return true;
  if (e.kind == ExprKind::linear) {
    for (const Term& t : e.linear.atoms)
      if (varies(t.id) && !can_narrow(t.id)) return false;
    return true;
  }
  if (e.kind == ExprKind::op && (e.op == ScalarOp::div || e.op == ScalarOp::rem))
    return nest_.dag.is_constant(e.args[1]) && nest_.dag[e.args[0]].range.low >= 0 && can_narrow(e.args[0]) &&
           can_narrow(e.args[1]);
  return false;
}

/// As vector(), in 32 bits. Sums may wrap on the way; the result fits.
Value* Emitter::narrow(int id) {
  const Expr& e = nest_.dag[id];
  return once(&Level::narrow, level_of(e.depends), id, [&]() -> Value* {
    if (e.kind == ExprKind::op) narrow(e.args[0]), narrow(e.args[1]);
    for (const Term& t : e.linear.atoms)
      if (varies(t.id)) narrow(t.id);
    if (!varies(id)) return splat(b_.CreateTrunc(value(id), b_.getInt32Ty()));
    if (e.kind == ExprKind::linear) return linear_vector(e.linear, b_.getInt32Ty());
    Value *x = narrow(e.args[0]), *y = narrow(e.args[1]);
    return e.op == ScalarOp::div ? b_.CreateUDiv(x, y) : b_.CreateURem(x, y);
  });
}

/// A number that all lanes share, in 32 bits where it fits, else `otherwise`.
Value* Emitter::narrow_or(int id, int64_t otherwise) {
  Value* const whole = value(id);
  const std::string key = fmt::format("n{}or{}", id, otherwise);
  return once(&Level::sums, level_of(nest_.dag[id].depends), key, [&] {
    Value* const low = b_.CreateTrunc(whole, b_.getInt32Ty());
    Value* const fits = b_.CreateICmpEQ(b_.CreateSExt(low, b_.getInt64Ty()), whole);
    Value* const outside = b_.getInt32(static_cast<uint32_t>(otherwise));
    return splat(b_.CreateSelect(fits, low, outside));
  });
}

/// 0, step, 2·step … in the lanes.
Value* Emitter::steps(llvm::Type* scalar, int64_t step) {
  std::vector<llvm::Constant*> lanes;
  for (int i = 0; i < nest_.lanes; ++i)
    lanes.push_back(
        llvm::ConstantInt::get(scalar, static_cast<uint64_t>(i) * static_cast<uint64_t>(step), true));
  return llvm::ConstantVector::get(lanes);
}

/// In 64 bits, or in 32.
Value* Emitter::linear_vector(const Linear& linear, llvm::Type* scalar) {
  Value* sum = splat(b_.CreateZExtOrTrunc(uniform_sum(linear, true), scalar));
  if (const int64_t step = linear.of_dim(nest_.lane_dim())) sum = b_.CreateAdd(sum, steps(scalar, step));
  for (const Term& t : linear.atoms) {
    if (!varies(t.id)) continue;
    Value* factor = llvm::ConstantInt::get(vector_type(scalar), static_cast<uint64_t>(t.coefficient), true);
    sum = b_.CreateAdd(sum, b_.CreateMul(scalar->isIntegerTy(64) ? value(t.id) : narrow(t.id), factor));
  }
  return sum;
}

/// The part of a linear form that all lanes share, for lane 0; summed from outer to inner loops so that each
/// partial sum is hoisted.
Value* Emitter::uniform_sum(const Linear& linear, bool with_base) {
  struct Part {
    int level;
    Term term;
    bool is_dim;
  };
  std::vector<Part> parts;
  for (const Term& t : linear.dims)
    if (dim_value_[t.id]) parts.push_back({dim_level_[t.id], t, true});
  for (const Term& t : linear.atoms)
    if (!varies(t.id)) parts.push_back({level_of(nest_.dag[t.id].depends), t, false});
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Part& a, const Part& b) { return a.level < b.level; });
  Value* sum = nullptr;
  std::string key;
  for (const Part& part : parts) {
    key += fmt::format("{}{}*{}", part.is_dim ? 'd' : 'e', part.term.id, part.term.coefficient);
    sum = once(&Level::sums, part.level, key, [&] {
      Value* factor = part.is_dim ? dim_value_[part.term.id] : value(part.term.id);
      Value* product = b_.CreateMul(factor, i64_(part.term.coefficient));
      return sum ? b_.CreateAdd(sum, product) : product;
    });
  }
  if (!with_base) return sum ? sum : i64_(0);
  if (!sum) return i64_(linear.base);
  Builder::InsertPointGuard guard(b_);
  seek(parts.back().level);
  return b_.CreateAdd(sum, i64_(linear.base));
}

Value* Emitter::buffer(int index) {
  return once(&Level::sums, 0, fmt::format("buffer{}", index), [&] {
    Value* slot = b_.CreateConstGEP1_64(b_.getPtrTy(), function_->getArg(0), static_cast<uint64_t>(index));
    return b_.CreateLoad(b_.getPtrTy(), slot);
  });
}

bool Emitter::indirect(const Linear& linear) const {
  for (const Term& t : linear.atoms)
    if (varies(t.id)) return true;
  return false;
}

/// The address of lane 0 (of all lanes, when the offset does not vary).
Value* Emitter::address(int index, DType memory, const Linear& offset) {
  llvm::Type* type = scalar_type(context_, memory, true);
  Value* at = b_.CreateGEP(type, buffer(index), uniform_sum(offset, false));
  return offset.base ? b_.CreateGEP(type, at, i64_(offset.base)) : at;
}

Value* Emitter::lane_addresses(int index, DType memory, int offset) {
  Value* lanes = can_narrow(offset) ? narrow(offset) : vector(offset);
  return b_.CreateGEP(scalar_type(context_, memory, true), buffer(index), lanes);
}

Value* Emitter::with_mask(Value* predicate) {
  if (!predicate) return mask_ ? mask_ : tail_mask(nest_.lanes);
  return mask_ ? b_.CreateAnd(predicate, mask_) : predicate;
}

/// Loads that step through the tile's dimension: a square for as many lanes as a tile has elements,
/// transposed. The squares beside each other are a vector for each element of the tile.
const Values& Emitter::tile_of(int id, const Linear& offset) {
  Values& all = tiles_[id];
  if (!all.empty()) return all;
  const Expr& e = nest_.dag[id];
  const int n = nest_.tile;
  llvm::Type* scalar = scalar_type(context_, e.memory, true);
  Value* at = address(static_cast<int>(e.bits), e.memory, offset);  // of step 0
  std::vector<Values> squares;
  for (int from = 0; from < nest_.lanes; from += n) {
    Values rows;
    for (int lane = from; lane < from + n; ++lane)
      rows.push_back(
          b_.CreateAlignedLoad(llvm::FixedVectorType::get(scalar, static_cast<unsigned>(n)),
                               b_.CreateGEP(scalar, at, i64_(lane * offset.of_dim(nest_.lane_dim()))),
                               llvm::Align(static_cast<uint64_t>(e.memory.bytes()))));
    const int in_lane = std::min(n, static_cast<int>(16 / e.memory.bytes()));  // what 128 bits hold
    for (int k = n / 2; k >= in_lane; k /= 2) swap_halves(b_, rows, k);
    interleave(b_, rows, in_lane);
    squares.push_back(std::move(rows));
  }
  for (int i = 0; i < n; ++i) {
    Values beside;
    for (const Values& rows : squares) beside.push_back(rows[i]);
    all.push_back(llvm::concatenateVectors(b_, beside));
  }
  return all;
}

/// Asks for what lies where a buffer is read ahead (Nest::ahead); that no memory is there does no harm.
void Emitter::fetch_ahead(int index, Value* at, int64_t bytes) {
  const auto ahead = nest_.ahead.find(index);
  if (ahead == nest_.ahead.end()) return;
  constexpr int64_t line = 64;
  for (int64_t k = 0; k < bytes; k += line)
    b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {b_.getPtrTy()},
                       {b_.CreateGEP(b_.getInt8Ty(), at, i64_(ahead->second + k)), b_.getInt32(0),
                        b_.getInt32(2), b_.getInt32(1)});  // a read, into the second cache, of data
}

/// Elements in a row where the mask says so, zeros elsewhere. Without AVX-512 LLVM 19 must not cut such a
/// load in registers itself: where a half's mask turns out to be zero (a condition that all lanes share, and
/// lanes past the end) it reads that half whole.
Value* Emitter::masked_row(llvm::Type* wide, Value* at, llvm::Align align, Value* mask) {
  static const bool avx512 = cpu_has("avx512f");
  if (avx512 || llvm::isa<llvm::Constant>(mask))
    return b_.CreateMaskedLoad(wide, at, align, mask, llvm::Constant::getNullValue(wide));
  const unsigned bits = wide->getScalarSizeInBits();
  const int in_register = static_cast<int>(256 / bits);
  const auto instruction =
      bits == 64 ? llvm::Intrinsic::x86_avx_maskload_pd_256 : llvm::Intrinsic::x86_avx_maskload_ps_256;
  Value* signs = b_.CreateSExt(mask, vector_type(b_.getIntNTy(bits)));
  Values parts;
  for (int from = 0; from < nest_.lanes; from += in_register) {
    llvm::SmallVector<int, 8> own(static_cast<size_t>(in_register));
    std::iota(own.begin(), own.end(), from);
    parts.push_back(
        b_.CreateIntrinsic(instruction, {},
                           {b_.CreateConstGEP1_64(wide->getScalarType(), at, static_cast<uint64_t>(from)),
                            b_.CreateShuffleVector(signs, own)}));
  }
  return b_.CreateBitCast(llvm::concatenateVectors(b_, parts), wide);
}

Value* Emitter::load(int id) {
  const Expr& e = nest_.dag[id];
  const Linear offset = nest_.dag.to_linear(e.args[0]);
  llvm::Type* scalar = scalar_type(context_, e.memory, true);
  llvm::Type* wide = vector_type(scalar);
  const llvm::Align align(static_cast<uint64_t>(e.memory.bytes()));
  const int index = static_cast<int>(e.bits);
  Value* predicate = e.args.size() > 1 ? value(e.args[1]) : nullptr;
  const bool varying_predicate = predicate && varies(e.args[1]);
  const int64_t step = offset.of_dim(nest_.lane_dim());
  if (!varies(e.args[0])) {
    Value* any = varying_predicate ? b_.CreateOrReduce(with_mask(predicate)) : predicate;
    Value* at = address(index, e.memory, offset);
    if (any) at = b_.CreateSelect(any, at, zeros_);
    Value* x = from_memory(b_, b_.CreateAlignedLoad(scalar, at, align), e.memory);
    if (!varying_predicate) return x;
    return b_.CreateSelect(predicate, splat(x), llvm::Constant::getNullValue(vector_type(x->getType())));
  }
  // Where the CPU has no instruction for chosen elements, LLVM branches around each; reading zeros instead is
  // quicker, to compile too.
  static const bool avx2 = cpu_has("avx2"), avx512 = cpu_has("avx512f"), avx512bw = cpu_has("avx512bw");
  const bool in_a_row = step == 1 && !indirect(offset), small = e.memory.bytes() < 4;
  const bool chooses = in_a_row ? (small ? avx512bw : avx2) : !small && avx512;
  if (in_a_row && (chooses || !varying_predicate)) {
    Value* at = address(index, e.memory, offset);
    if (predicate && !varying_predicate) at = b_.CreateSelect(predicate, at, zeros_);
    Value* x;
    if (varying_predicate || mask_)
      x = masked_row(wide, at, align, with_mask(varying_predicate ? predicate : nullptr));
    else
      x = b_.CreateAlignedLoad(wide, at, align);
    if (!mask_ && !predicate) fetch_ahead(index, at, nest_.lanes * e.memory.bytes());
    return from_memory(b_, x, e.memory);
  }
  if (tile_step_ >= 0 && !predicate && !indirect(offset) && offset.of_dim(nest_.fastest) == 1) {
    bool straight = true;  // no other way that the tile's dimension moves the address
    for (const Term& t : offset.atoms) straight &= !(nest_.dag[t.id].depends >> nest_.fastest & 1);
    if (straight) return from_memory(b_, tile_of(id, offset)[static_cast<size_t>(tile_step_)], e.memory);
  }
  Value* at = lane_addresses(index, e.memory, e.args[0]);
  if (predicate && !chooses) at = b_.CreateSelect(predicate, at, splat(zeros_));
  Value* each = predicate && !varying_predicate ? splat(predicate) : predicate;
  Value* x = b_.CreateMaskedGather(wide, at, align, with_mask(chooses ? each : nullptr),
                                   llvm::Constant::getNullValue(wide));
  return from_memory(b_, x, e.memory);
}

/// A library function on every active lane.
Value* Emitter::call(const Expr& e) {
  llvm::Type* scalar = scalar_type(context_, e.dtype);
  const std::vector<llvm::Type*> types(e.args.size(), scalar);
  const llvm::FunctionCallee function =
      module_.getOrInsertFunction(e.name, llvm::FunctionType::get(scalar, types, false));
  Values args;
  bool wide = false;
  for (const int arg : e.args) wide |= varies(arg);
  for (const int arg : e.args) args.push_back(wide ? vector(arg) : value(arg));
  if (!wide) return b_.CreateCall(function, args);
  Value* result = llvm::Constant::getNullValue(vector_type(scalar));
  for (int64_t lane = 0; lane < active_; ++lane) {
    Values one;
    for (Value* arg : args) one.push_back(b_.CreateExtractElement(arg, static_cast<uint64_t>(lane)));
    result = b_.CreateInsertElement(result, b_.CreateCall(function, one), static_cast<uint64_t>(lane));
  }
  return result;
}

/// Stores a vector (or the scalar result of a reduction over lanes).
void Emitter::store(int index, DType memory, int offset_id, Value* computed, Value* extra_offset,
                    int stream_align) {
  const Linear offset = nest_.dag.to_linear(offset_id);
  const llvm::Align align(static_cast<uint64_t>(memory.bytes()));
  llvm::Type* scalar = scalar_type(context_, memory, true);
  if (!varies(offset_id) && computed->getType()->isVectorTy())  // a single element
    computed = b_.CreateExtractElement(computed, uint64_t{0});
  Value* x = to_memory(b_, computed, memory);
  if (!varies(offset_id) || (offset.of_dim(nest_.lane_dim()) == 1 && !indirect(offset))) {
    Value* at = address(index, memory, offset);
    if (extra_offset) at = b_.CreateGEP(scalar, at, extra_offset);
    if (mask_ && x->getType()->isVectorTy())
      b_.CreateMaskedStore(x, at, align, mask_);
    else if (stream_align > 0)
      b_.CreateAlignedStore(x, at, llvm::Align(static_cast<uint64_t>(stream_align)))
          ->setMetadata(llvm::LLVMContext::MD_nontemporal,
                        llvm::MDNode::get(context_, llvm::ConstantAsMetadata::get(b_.getInt32(1))));
    else
      b_.CreateAlignedStore(x, at, align);
    return;
  }
  b_.CreateMaskedScatter(x, lane_addresses(index, memory, offset_id), align, with_mask(nullptr));
}

}  // namespace millrace::codegen
