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

/// `rounds` times four products of tiles (AMX), into four sums, and returns how many operations that were.
/// The four tiles that they multiply are loaded from the next 4,096 of `bytes` at `operands`, round and
/// round; without bytes they stay in registers. Only where tiles_allowed(), and the CPU has the type.
double run_bf16_tiles(const void* operands, int64_t bytes, int64_t rounds);
double run_int8_tiles(const void* operands, int64_t bytes, int64_t rounds);

/// Copies with vector loads and stores; `stream`: past the caches (`to` must be a multiple of 64 then).
void copy_vectors(void* to, const void* from, size_t bytes, bool stream);

}  // namespace millrace
