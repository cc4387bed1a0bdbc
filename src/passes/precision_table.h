// What mixed precision ("bf16", "fp16") computes how, operator by operator. Composites count by what they are made of;
// those that a provider claims whole (attention, layer norm) stay f32, but see narrow_operands. docs/recipes.md prints the table.
#pragma once

#include <millrace/operator.h>

namespace millrace {

enum class Arithmetic {
  narrow,  // 16-bit operands and results, sums in f32
  follows,  // keeps relative and absolute errors about as they are: its result may be stored in 16 bits when operands are
  full  // f32: statistics, reductions, losses, exp and what else is named nowhere
};

Arithmetic arithmetic_of(const Node& node);

/// How many of its operands, the first ones, "bf16" narrows: all of those with narrow arithmetic, and what attention
/// multiplies, whose statistics, mask and softmax stay f32.
size_t narrow_operands(const Node& node);

/// Operators that turn a small error of a large number into a large one: their operands stay f32. Of those are comparisons
/// for equality: the gradient of max looks for the element that was the largest before it was rounded.
bool wants_f32(const Node& node);

}  // namespace millrace
