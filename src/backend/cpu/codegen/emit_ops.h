// LLVM instructions for scalar operations; they work on scalars and on vectors alike. Only for the emitter.
#pragma once

#include <string>

#include <millrace/operator.h>
#include <millrace/scalar.h>

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Intrinsics.h"

namespace millrace::codegen {

using Builder = llvm::IRBuilder<>;

/// The type a dtype is computed in, or (in_memory) stored as.
llvm::Type* scalar_type(llvm::LLVMContext& context, DType dtype, bool in_memory = false);
/// `scalar` in as many lanes as `like` has (`like` may be a scalar).
llvm::Type* shaped(llvm::Type* scalar, llvm::Type* like);

llvm::Value* emit_unary(Builder& b, ScalarOp op, DType dtype, llvm::Value* x);
llvm::Value* emit_binary(Builder& b, ScalarOp op, DType dtype, llvm::Value* x, llvm::Value* y);
llvm::Value* emit_cast(Builder& b, llvm::Value* x, DType from, DType to);
/// x × 2^k, as Dag::scale.
llvm::Value* scale(Builder& b, llvm::Value* x, llvm::Value* shifted);
/// From the loaded type to the computed one, and back (16-bit floats round to nearest even).
llvm::Value* from_memory(Builder& b, llvm::Value* x, DType memory);
llvm::Value* to_memory(Builder& b, llvm::Value* x, DType memory);
/// An f32 rounded to a 16-bit float and back.
llvm::Value* round_to(Builder& b, llvm::Value* x, DType memory);

/// What a reduction starts from.
llvm::Constant* identity(llvm::Type* type, Reduction kind, DType dtype);
/// Combines accumulators. argmax and argmin have positions beside values.
struct Accumulator {
  llvm::Value* value = nullptr;
  llvm::Value* position = nullptr;
};
Accumulator combine(Builder& b, Reduction kind, DType dtype, Accumulator x, Accumulator y);

}  // namespace millrace::codegen
