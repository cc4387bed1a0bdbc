// Attention in tiles, forward and backward, as a provider of the cpu back end.
#pragma once

#include <memory>

#include "target/provider.h"

namespace millrace::cpu {

/// Takes attention, self_attention and their gradients in f32 and bf16, whole: blocks of scores live in the cache only, with
/// the running maximum and sum of the softmax (Dao, FlashAttention-2, 2023), so memory is linear in the length. Products of
/// bf16 are sums of bf16 pairs in f32 where the CPU has AVX512_BF16, else of f32 copies. Operands are read where they lie,
/// whatever their layout. Chunks and the order of sums are fixed by the problem: results are the same for any number of
/// threads.
std::unique_ptr<Provider> make_attention_provider();

}  // namespace millrace::cpu
