// The loops whose speed is a machine's limit.
#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace {

/// `rounds` times a fixed number of independent fused multiply-adds on registers, in the widest vectors there
/// are. Returns how many floating-point operations that were (a multiply-add is two).
double run_fp32_loop(int64_t rounds);
/// The same with pairs of bf16 (dot products into fp32); 0 and nothing done where the CPU has no such
/// instruction.
double run_bf16_loop(int64_t rounds);

/// Copies with vector loads and stores; `stream`: past the caches (`to` must be a multiple of 64 then).
void copy_vectors(void* to, const void* from, size_t bytes, bool stream);

}  // namespace millrace
