// This machine's measured limits: what our own kernels reach at best.
#include <algorithm>
#include <chrono>
#include <fmt/core.h>
#include <fstream>

#include <millrace/graph.h>
#include <millrace/program.h>

#include "base/thread_pool.h"
#include "cli/json.h"
#include "cli/verbs.h"

namespace millrace::cli {
namespace {

using Clock = std::chrono::steady_clock;

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown";
}

std::string instructions() {
  std::string text;
#if defined(__x86_64__)
  const auto add = [&](bool has, const char* name) {
    if (has) text += (text.empty() ? "" : " ") + std::string(name);
  };
  add(__builtin_cpu_supports("avx2"), "avx2");
  add(__builtin_cpu_supports("fma"), "fma");
  add(__builtin_cpu_supports("avx512f"), "avx512");
  add(__builtin_cpu_supports("avx512vnni"), "vnni");
  add(__builtin_cpu_supports("avx512bf16"), "bf16");
#endif
  return text;
}

/// Seconds of the fastest of several runs.
double best_seconds(const std::function<void()>& run) {
  run();
  double best = 1e30;
  const auto end = Clock::now() + std::chrono::milliseconds(700);
  do {
    const auto begin = Clock::now();
    run();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - begin).count());
  } while (Clock::now() < end);
  return best;
}

double matmul_gflops(DType dtype) {
  constexpr int64_t n = 1536;
  Graph graph;
  const Value a = graph.input("a", {dtype, {n, n}}), b = graph.input("b", {dtype, {n, n}});
  graph.set_outputs({graph.add("matmul", {a, b})});
  Program program = Program::compile(graph);
  return 2.0 * n * n * n / best_seconds([&] { program.run(); }) / 1e9;
}

double copy_gigabytes() {
  constexpr int64_t bytes = int64_t{256} << 20, chunks = 64;
  const Array from(u8, {bytes});
  Array to(u8, {bytes});
  const auto* source = static_cast<const char*>(from.data());
  auto* target = static_cast<char*>(to.data());
  const double seconds = best_seconds([&] {
    ThreadPool::global().parallel(chunks, [&](int64_t i) {
      std::memcpy(target + i * (bytes / chunks), source + i * (bytes / chunks), bytes / chunks);
    });
  });
  return 2.0 * static_cast<double>(bytes) / seconds / 1e9;
}

}  // namespace

Action declare_machine(Command& command) {
  auto json = std::make_shared<bool>(false);
  command.flag("--json", *json, "print one JSON object")
      .footer(
          "Measures for a few seconds what this machine gives: matrix products and memory, with all CPUs.\n");
  return [json] {
    const int64_t cpus = ThreadPool::global().threads();
    const double fp32 = matmul_gflops(f32), half = matmul_gflops(bf16), copy = copy_gigabytes();
    if (*json) {
      fmt::print("{}\n", json_object({{"cpu", cpu_name()},
                                      {"threads", cpus},
                                      {"instructions", instructions()},
                                      {"matmul_fp32_gflops", fp32},
                                      {"matmul_bf16_gflops", half},
                                      {"memory_gb_per_s", copy}})
                             .text);
      return 0;
    }
    fmt::print("{}\n  threads              {}\n  instructions         {}\n", cpu_name(), cpus,
               instructions());
    fmt::print("  matrix product fp32  {:.0f} GFLOP/s\n  matrix product bf16  {:.0f} GFLOP/s\n", fp32, half);
    fmt::print("  memory, read + write {:.1f} GB/s\n", copy);
    return 0;
  };
}

}  // namespace millrace::cli
