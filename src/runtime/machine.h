// This machine's measured limits: what a kernel could reach at best.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace millrace {

/// A cache, or the main memory at last. Rates count bytes read plus bytes written by a copy on all threads.
struct MemoryLevel {
  std::string name;   // "L2", "L3", "RAM"
  int64_t bytes = 0;  // for all threads together
  double gb_per_s = 0;
};

/// What products by a CPU's tiles (AMX) reach, in 10⁹ operations per second of all threads, by where their
/// operands come from; 0: there are none.
struct TileRates {
  double registers = 0, l1 = 0, l2 = 0;
};

struct Machine {
  std::string cpu;  // the model's name
  int threads = 1;
  std::string instructions;  // "avx2 fma avx512 …"
  /// 10⁹ floating-point operations per second of all threads. The peaks are fused multiply-adds on registers,
  /// or a matrix product where that was faster (units that only it uses); bf16 is 0 where the CPU has no
  /// units for it.
  double fp32_gflops = 0, bf16_gflops = 0;
  double matmul_fp32_gflops = 0, matmul_bf16_gflops = 0;  // 1,536³, by the kernels that training uses
  TileRates bf16_tiles, int8_tiles;
  std::vector<MemoryLevel> levels;  // the nearest first, RAM last
  double launch_seconds = 0;        // of a loop over all threads that does nothing
  std::string measured;             // the day, "2026-05-01"
  bool disturbed = false;           // others ran on these CPUs meanwhile: the figures are too low

  const MemoryLevel& ram() const { return levels.back(); }
  /// The peak for arithmetic on operands of so many bits: bf16's for 16 where there are units, else fp32's.
  double gflops(int bits) const { return bits == 16 && bf16_gflops > 0 ? bf16_gflops : fp32_gflops; }
};

/// Measures with the global thread pool, for a few seconds. Whatever else runs meanwhile makes it too low.
Machine measure_machine();

/// Where the figures of this CPU and number of threads are kept; nullopt without a cache folder.
std::optional<std::filesystem::path> machine_file();
/// What is kept there; nullopt when there is nothing, or nothing that this version reads.
std::optional<Machine> kept_machine();
/// Keeps the figures; a folder that cannot be written is passed over.
void keep_machine(const Machine& machine);
/// The better figure of each: nothing that disturbs a measurement makes a machine look faster.
Machine better_of(const Machine& one, const Machine& other);
/// The kept figures, else measured now and kept. Disturbed ones are measured again, at most every ten
/// minutes.
Machine this_machine(const std::function<Machine()>& measure = measure_machine);

}  // namespace millrace
