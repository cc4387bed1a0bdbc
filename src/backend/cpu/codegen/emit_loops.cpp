#include <algorithm>

#include "backend/cpu/codegen/emitter.h"
#include "llvm/IR/IntrinsicsX86.h"

namespace millrace::codegen {

using llvm::Value;

Emitter::Emitter(const Nest& nest, llvm::Module& module, const std::string& name)
    : nest_(nest),
      module_(module),
      context_(module.getContext()),
      b_(context_),
      dim_level_(nest.rank(), 0),
      dim_value_(nest.rank()) {
  llvm::FastMathFlags flags;
  flags.setAllowContract();
  b_.setFastMathFlags(flags);
  llvm::Type* type64 = b_.getInt64Ty();
  auto* type = llvm::FunctionType::get(b_.getVoidTy(), {b_.getPtrTy(), type64, type64, type64}, false);
  function_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, module);
  function_->addFnAttr(llvm::Attribute::NoUnwind);
  // Full-width vectors also where the CPU's tuning prefers narrower ones.
  function_->addFnAttr("prefer-vector-width", "512");
}

void Emitter::run() {
  llvm::BasicBlock* entry = llvm::BasicBlock::Create(context_, "entry", function_);
  b_.SetInsertPoint(entry);
  levels_.push_back({entry, {}, {}, {}, {}});
  bool predicated = false;
  for (int id = 0; id < nest_.dag.size(); ++id)
    predicated |= nest_.dag[id].kind == ExprKind::load && nest_.dag[id].args.size() > 1;
  if (predicated) {
    const unsigned bytes = static_cast<unsigned>(nest_.lanes) * 8;
    auto* zeros = b_.CreateAlloca(llvm::ArrayType::get(b_.getInt8Ty(), bytes));
    zeros->setAlignment(llvm::Align(64));
    b_.CreateMemSet(zeros, b_.getInt8(0), bytes, llvm::Align(64));
    zeros_ = zeros;
  }
  if (nest_.any_tail) {
    Value* const left = b_.CreateURem(function_->getArg(3), i64_(nest_.lanes));
    tail_ = b_.CreateICmpULT(steps(b_.getInt32Ty(), 1), splat(b_.CreateTrunc(left, b_.getInt32Ty())));
  }
  outer_loop(function_->getArg(1), function_->getArg(2));
#if defined(__x86_64__)
  // Streaming stores are not ordered with what tells other threads that this chunk is done.
  if (std::any_of(nest_.stores.begin(), nest_.stores.end(),
                  [](const Store& s) { return s.stream_align > 0; }))
    b_.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
#endif
  b_.CreateRetVoid();
}

/// Emits `for (i = begin; i < end; i += step)` carrying values; `guard`: it may run zero times.
Values Emitter::loop(Value* begin, Value* end, int64_t step, bool guard, Values carried,
                     const std::function<Values(Value*, Values)>& inside) {
  llvm::BasicBlock* before = b_.GetInsertBlock();
  llvm::BasicBlock* header = llvm::BasicBlock::Create(context_, "loop", function_);
  llvm::BasicBlock* after = llvm::BasicBlock::Create(context_, "done", function_);
  if (guard)
    b_.CreateCondBr(b_.CreateICmpSLT(begin, end), header, after);
  else
    b_.CreateBr(header);
  b_.SetInsertPoint(header);
  llvm::PHINode* i = b_.CreatePHI(b_.getInt64Ty(), 2);
  i->addIncoming(begin, before);
  std::vector<llvm::PHINode*> phis;
  Values inner;
  for (Value* c : carried) {
    phis.push_back(b_.CreatePHI(c->getType(), 2));
    phis.back()->addIncoming(c, before);
    inner.push_back(phis.back());
  }
  levels_.push_back({header, {}, {}, {}, {}});
  const Values result = inside(i, inner);
  levels_.pop_back();
  llvm::BasicBlock* last = b_.GetInsertBlock();
  Value* next = b_.CreateAdd(i, i64_(step));
  i->addIncoming(next, last);
  for (size_t k = 0; k < phis.size(); ++k) phis[k]->addIncoming(result[k], last);
  b_.CreateCondBr(b_.CreateICmpSLT(next, end), header, after);
  b_.SetInsertPoint(after);
  return guard ? joined(carried, before, result, last) : result;
}

/// Emits `if (condition)` around `inside`; a null condition is true.
Values Emitter::branch(Value* condition, Values carried, const std::function<Values(Values)>& inside) {
  llvm::BasicBlock* before = b_.GetInsertBlock();
  llvm::BasicBlock* then = llvm::BasicBlock::Create(context_, "then", function_);
  llvm::BasicBlock* after = llvm::BasicBlock::Create(context_, "after", function_);
  if (condition)
    b_.CreateCondBr(condition, then, after);
  else
    b_.CreateBr(then);
  b_.SetInsertPoint(then);
  levels_.push_back({then, {}, {}, {}, {}});
  const Values result = inside(carried);
  levels_.pop_back();
  llvm::BasicBlock* last = b_.GetInsertBlock();
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
  return condition ? joined(carried, before, result, last) : result;
}

/// What values are where two ways meet.
Values Emitter::joined(const Values& a, llvm::BasicBlock* from_a, const Values& b, llvm::BasicBlock* from_b) {
  Values merged;
  for (size_t k = 0; k < a.size(); ++k) {
    llvm::PHINode* phi = b_.CreatePHI(a[k]->getType(), 2);
    phi->addIncoming(a[k], from_a);
    phi->addIncoming(b[k], from_b);
    merged.push_back(phi);
  }
  return merged;
}

/// The parallel loop: an odometer over the outer dimensions.
void Emitter::outer_loop(Value* begin, Value* end) {
  const std::vector<int> dims = nest_.outer_dims();
  Values digits(dims.size());
  Value* rest = begin;
  for (size_t k = dims.size(); k-- > 0;) {
    Value* size = i64_(nest_.outer_size(dims[k]));
    digits[k] = k == 0 ? rest : b_.CreateURem(rest, size);
    if (k > 0) rest = b_.CreateUDiv(rest, size);
  }
  loop(begin, end, 1, false, digits, [&](Value*, Values now) {
    for (size_t k = 0; k < dims.size(); ++k) {
      const bool tiled = dims[k] == nest_.fastest && nest_.tile > 0;
      if (dims[k] == Nest::kLaneGroup)
        group_index_ = now[k];
      else if (dims[k] == Nest::kPart)
        part_index_ = now[k];
      else
        set_dim(dims[k], tiled ? b_.CreateMul(now[k], i64_(nest_.tile)) : now[k], 1);
    }
    lane_blocks();
    Value* carry = nullptr;
    for (size_t k = dims.size(); k-- > 0;) {
      Value* next = b_.CreateAdd(now[k], carry ? carry : i64_(1));
      if (k > 0) {
        Value* wraps = b_.CreateICmpEQ(next, i64_(nest_.outer_size(dims[k])));
        now[k] = b_.CreateSelect(wraps, i64_(0), next);
        carry = b_.CreateZExt(wraps, b_.getInt64Ty());
      } else {
        now[k] = next;
      }
    }
    return now;
  });
}

Value* Emitter::tail_mask(int64_t active) {
  std::vector<llvm::Constant*> lanes;
  for (int i = 0; i < nest_.lanes; ++i) lanes.push_back(b_.getInt1(i < active));
  return llvm::ConstantVector::get(lanes);
}

/// The first `active` lanes hold the elements from `base` on.
void Emitter::set_lanes(Value* base, int64_t active, int level) {
  mask_ = active == nest_.lanes ? nullptr : tail_ ? tail_ : tail_mask(active);
  active_ = active;
  set_dim(nest_.lane_dim(), base, level);
}

/// The lane loop when lanes hold kept elements; else straight to the reduced loops.
void Emitter::lane_blocks() {
  const int64_t n = nest_.sizes().back(), lanes = nest_.lanes, tail = n % lanes;
  if (nest_.lane_reduced()) return block();
  const bool any = nest_.any_length && nest_.rank() == 1;
  Value* const length = any ? function_->getArg(3) : i64_(n);
  Value* const full = any ? b_.CreateAnd(length, i64_(-lanes)) : i64_(n - tail);
  const auto full_block = [&](Value* base, Values) {
    set_lanes(base, lanes, open_level());
    block();
    return Values{};
  };
  const auto tail_block = [&](Values) {
    set_lanes(full, tail, open_level());
    block();
    return Values{};
  };
  if (n <= lanes) {  // one block: what depends on lanes alone leaves all loops
    set_lanes(i64_(0), n, 0);
    block();
  } else if (nest_.group >= n) {
    loop(i64_(0), full, lanes, false, {}, full_block);
    if (tail > 0) branch(nullptr, {}, tail_block);
  } else {
    Value* first = b_.CreateMul(group_index_, i64_(nest_.group));
    Value* next = b_.CreateAdd(first, i64_(nest_.group));
    loop(first, b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, next, full), lanes, true, {}, full_block);
    if (tail > 0) branch(b_.CreateICmpSGE(next, length), {}, tail_block);
  }
}

void Emitter::block() {
  if (nest_.tile > 0) return tiled_block();
  const Values result = reduced_loops(0, start_values());
  if (!nest_.reduces.empty()) finish(result);
}

/// A block of lanes at all elements of a tile of the fastest dimension: unrolled where lanes and tile are
/// whole.
void Emitter::tiled_block() {
  const int dim = nest_.fastest;
  const int64_t size = nest_.sizes()[dim];
  Value* first = dim_value_[dim];
  const int outside = dim_level_[dim];
  const auto one_by_one = [&](Values) {
    Value* last =
        b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, b_.CreateAdd(first, i64_(nest_.tile)), i64_(size));
    loop(first, last, 1, false, {}, [&](Value* i, Values) {
      set_dim(dim, i, open_level());
      return body({});
    });
    return Values{};
  };
  const auto at_once = [&](Values) {
    for (tile_step_ = 0; tile_step_ < nest_.tile; ++tile_step_) {
      levels_.push_back({b_.GetInsertBlock(), {}, {}, {}, {}});
      set_dim(dim, b_.CreateAdd(first, i64_(tile_step_)), open_level());
      body({});
      levels_.pop_back();
    }
    tile_step_ = -1;
    tiles_.clear();
    return Values{};
  };
  if (mask_) {
    one_by_one({});
  } else if (size % nest_.tile == 0) {
    branch(nullptr, {}, at_once);
  } else {
    Value* whole = b_.CreateICmpSLE(first, i64_(size - nest_.tile));
    branch(whole, {}, at_once);
    branch(b_.CreateNot(whole), {}, one_by_one);
  }
  set_dim(dim, first, outside);
}

Values Emitter::start_values() {
  Values start;
  for (const Reduce& r : nest_.reduces) {
    const DType dtype = nest_.dag[r.value].dtype;
    start.push_back(identity(vector_type(scalar_type(context_, dtype)), r.kind, dtype));
    if (r.position >= 0) start.push_back(llvm::ConstantInt::get(vector_type(b_.getInt64Ty()), INT64_MAX));
  }
  return start;
}

/// Combines the accumulators of a reduction, which are the next in `a`, with others.
void Emitter::merge_next(const Reduce& r, const Values& a, Accumulator b, Values& merged) {
  const size_t k = merged.size();
  const bool arg = r.position >= 0;
  const Accumulator sum = combine(b_, r.kind, nest_.dag[r.value].dtype, {a[k], arg ? a[k + 1] : nullptr}, b);
  merged.push_back(sum.value);
  if (arg) merged.push_back(sum.position);
}

Values Emitter::merge(const Values& a, const Values& b) {
  Values merged;
  for (const Reduce& r : nest_.reduces) {
    const size_t k = merged.size();
    merge_next(r, a, {b[k], r.position >= 0 ? b[k + 1] : nullptr}, merged);
  }
  return merged;
}

/// The k-th reduced dimension and those inside of it.
Values Emitter::reduced_loops(size_t k, Values carried) {
  std::vector<int> dims;
  for (int d = 0; d < nest_.rank(); ++d)
    if (nest_.reduced[d]) dims.push_back(d);
  if (k == dims.size()) return body(std::move(carried));
  const int dim = dims[k];
  int64_t size = nest_.sizes()[dim];
  Value *begin = i64_(0), *end = i64_(size);
  if (nest_.split == dim) {
    size = nest_.part_size;
    begin = b_.CreateMul(part_index_, i64_(size));
    end = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, b_.CreateAdd(begin, i64_(size)), end);
  }
  const bool is_lane = dim == nest_.lane_dim();
  const int64_t step = is_lane ? nest_.lanes : 1, strip = 128 * step;
  const auto run = [&](Value* from, Value* to, Values inner) {
    if (is_lane) return lane_steps(k, from, to, std::move(inner));
    return loop(from, to, 1, false, std::move(inner), [&](Value* i, Values now) {
      set_dim(dim, i, open_level());
      return reduced_loops(k + 1, std::move(now));
    });
  };
  // Fresh accumulators, merged in the end: sums of long loops lose less that way.
  if (size > strip) {
    return loop(begin, end, strip, false, std::move(carried), [&](Value* from, Values now) {
      Value* to = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, b_.CreateAdd(from, i64_(strip)), end);
      return merge(now, run(from, to, start_values()));
    });
  }
  if (k > 0 && size >= 8 * step) return merge(carried, run(begin, end, start_values()));
  return run(begin, end, std::move(carried));
}

/// The lane loop when lanes hold reduced elements of [begin, end): whole vectors, then the tail of the
/// dimension.
Values Emitter::lane_steps(size_t k, Value* begin, Value* end, Values carried) {
  const int64_t n = nest_.sizes().back(), lanes = nest_.lanes, full = n / lanes * lanes, tail = n - full;
  if (n <= lanes) {
    set_lanes(i64_(0), n, 0);
    return reduced_loops(k + 1, std::move(carried));
  }
  Value* last = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, end, i64_(full));
  carried = loop(begin, last, lanes, true, std::move(carried), [&](Value* base, Values now) {
    set_lanes(base, lanes, open_level());
    return reduced_loops(k + 1, std::move(now));
  });
  if (tail == 0) return carried;
  return branch(b_.CreateICmpEQ(end, i64_(n)), std::move(carried), [&](Values now) {
    set_lanes(i64_(full), tail, open_level());
    return reduced_loops(k + 1, std::move(now));
  });
}

/// One point (vector) of the iteration space: all values first, then the stores, so that results may share
/// their operands' memory.
Values Emitter::body(Values carried) {
  Values computed;
  for (const Store& s : nest_.stores) computed.push_back(vector(s.value));
  Values next;
  for (const Reduce& r : nest_.reduces) {
    const DType dtype = nest_.dag[r.value].dtype;
    const bool arg = r.position >= 0;
    Accumulator now{vector(r.value), arg ? vector(r.position) : nullptr};
    if (mask_ && nest_.lane_reduced()) {
      now.value = b_.CreateSelect(mask_, now.value, identity(now.value->getType(), r.kind, dtype));
      if (arg)
        now.position =
            b_.CreateSelect(mask_, now.position, llvm::ConstantInt::get(now.position->getType(), INT64_MAX));
    }
    merge_next(r, carried, now, next);
  }
  for (size_t i = 0; i < nest_.stores.size(); ++i)
    store(nest_.stores[i].buffer, nest_.stores[i].memory, nest_.stores[i].offset, computed[i], nullptr,
          nest_.stores[i].stream_align);
  return next;
}

/// Combines the lanes of an accumulator by halves, in fixed order.
Value* Emitter::reduce_lanes(const Reduce& r, Value* value, Value* position, Value** best_position) {
  for (int width = nest_.lanes; width > 1; width /= 2) {
    std::vector<int> low(width / 2), high(width / 2);
    for (int i = 0; i < width / 2; ++i) low[i] = i, high[i] = i + width / 2;
    const auto half = [&](Value* v, const std::vector<int>& lanes) {
      return v ? b_.CreateShuffleVector(v, lanes) : nullptr;
    };
    const Accumulator sum =
        combine(b_, r.kind, nest_.dag[r.value].dtype, {half(value, low), half(position, low)},
                {half(value, high), half(position, high)});
    value = sum.value;
    position = sum.position;
  }
  if (position) *best_position = b_.CreateExtractElement(position, uint64_t{0});
  return b_.CreateExtractElement(value, uint64_t{0});
}

void Emitter::finish(Values carried) {
  size_t k = 0;
  for (const Reduce& r : nest_.reduces) {
    const DType dtype = nest_.dag[r.value].dtype;
    Value* value = carried[k++];
    Value* position = r.position >= 0 ? carried[k++] : nullptr;
    if (nest_.lane_reduced()) value = reduce_lanes(r, value, position, &position);
    if (r.kind == Reduction::mean)
      value = b_.CreateFDiv(value, llvm::ConstantFP::get(value->getType(), static_cast<double>(r.divisor)));
    Value* extra = nullptr;
    if (r.part_stride > 0) extra = b_.CreateMul(part_index_, i64_(r.part_stride));
    if (r.value_buffer >= 0) store(r.value_buffer, dtype, r.offset, value, extra);
    store(r.buffer, r.memory, r.offset, position ? position : value, extra);
  }
}

void emit(const Nest& nest, llvm::Module& module, const std::string& name) {
  Emitter(nest, module, name).run();
}

}  // namespace millrace::codegen
