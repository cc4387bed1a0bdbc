#include "runtime/machine.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <ctime>
#include <fstream>
#include <functional>
#include <immintrin.h>
#include <map>
#include <nlohmann/json.hpp>
#include <sched.h>
#include <set>
#include <thread>
#include <unistd.h>

#include <millrace/program.h>

#include "base/cache_folder.h"
#include "base/cpu.h"
#include "base/file.h"
#include "base/format.h"
#include "base/seconds_since.h"
#include "base/thread_pool.h"
#include "runtime/machine_loops.h"

namespace millrace {
namespace {

using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

constexpr int kVersion = 4;  // of the file

std::string instructions() {
  constexpr std::pair<const char*, const char*> named[] = {{"avx2", "avx2"},        {"fma", "fma"},
                                                           {"avx512f", "avx512"},   {"avx512_vnni", "vnni"},
                                                           {"avx512_bf16", "bf16"}, {"amx_bf16", "amx-bf16"}};
  std::string text;
  for (const auto& [flag, name] : named)
    if (cpu_has(flag)) text += (text.empty() ? "" : " ") + std::string(name);
  return text;
}

double seconds_of(const std::function<void()>& run) {
  const auto begin = Clock::now();
  run();
  return seconds_since(begin);
}

/// Seconds of the fastest of several runs, the first (which wakes threads and touches memory) left out.
double best_seconds(double time_limit, const std::function<void()>& run) {
  run();
  double best = 1e30, total = 0;
  do {
    const double seconds = seconds_of(run);
    best = std::min(best, seconds);
    total += seconds;
  } while (total < time_limit);
  return best;
}

/// 10⁹ operations per second of all threads; the loop gets the thread's number and how many rounds it takes.
double loop_rate(const std::function<double(int64_t, int64_t)>& loop) {
  ThreadPool& pool = ThreadPool::global();
  constexpr int64_t rounds = 1 << 20;  // a few milliseconds: long against waking threads
  const double operations = loop(0, 1) * static_cast<double>(rounds) * pool.threads();
  if (operations == 0) return 0;
  const auto all = [&] { pool.parallel(pool.threads(), [&](int64_t thread) { loop(thread, rounds); }); };
  return operations / best_seconds(0.3, all) / 1e9;
}

double loop_gflops(double (*loop)(int64_t)) {
  return loop_rate([&](int64_t, int64_t rounds) { return loop(rounds); });
}

/// The CPU time that the process got while all threads computed, of what there was.
double share_of_cpus(const std::function<void()>& compute) {
  const auto cpu_seconds = [] {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  const double before = cpu_seconds(), wall = seconds_of(compute);
  return (cpu_seconds() - before) / (wall * ThreadPool::global().threads());
}

double matmul_gflops(DType dtype) {
  constexpr int64_t n = 1536;
  Graph graph;
  const Value a = graph.input("a", {dtype, {n, n}}), b = graph.input("b", {dtype, {n, n}});
  graph.set_outputs({graph.add("matmul", {a, b})});
  Program program = Program::compile(graph);
  return 2.0 * n * n * n / best_seconds(0.5, [&] { program.run(); }) / 1e9;
}

/// Copy rate when each thread goes back and forth over `bytes` / threads of its own, by the fastest way to
/// copy.
double copy_rate(int64_t bytes) {
  ThreadPool& pool = ThreadPool::global();
  const int64_t threads = pool.threads(), half = bytes / threads / 2 / 256 * 256;
  // So often that a round takes some milliseconds.
  const int64_t repeats = std::max<int64_t>(1, (int64_t{64} << 20) / bytes);
  std::vector<Array> buffers;
  for (int64_t t = 0; t < 2 * threads; ++t) {
    buffers.emplace_back(u8, Shape{half});
    std::memset(buffers.back().data(), 1,
                static_cast<size_t>(half));  // untouched pages are all one page of zeros
  }
  const auto rate = [&](const std::function<void(void*, const void*)>& copy) {
    const double seconds = best_seconds(0.25, [&] {
      pool.parallel(threads, [&](int64_t t) {
        for (int64_t r = 0; r < repeats; ++r) copy(buffers[2 * t].data(), buffers[2 * t + 1].data());
      });
    });
    return 2.0 * static_cast<double>(half * threads * repeats) / seconds / 1e9;
  };
  const auto size = static_cast<size_t>(half);
  double best = rate([&](void* to, const void* from) { std::memcpy(to, from, size); });
  for (const bool stream : {false, true})
    best = std::max(best, rate([&](void* to, const void* from) { copy_vectors(to, from, size, stream); }));
  return best;
}

/// Caches of level 2 and up that the CPUs of this process have, by level: bytes of one, and how many there
/// are.
std::map<int, std::pair<int64_t, int>> caches() {
  std::map<int, std::set<std::string>> owners;
  std::map<int, int64_t> sizes;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return {};
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &set)) continue;
    for (int index = 0;; ++index) {
      const fs::path folder = fmt::format("/sys/devices/system/cpu/cpu{}/cache/index{}", cpu, index);
      int level = 0;
      int64_t kilobytes = 0;
      std::string type, shared;
      std::ifstream level_file(folder / "level"), type_file(folder / "type"), size_file(folder / "size"),
          shared_file(folder / "shared_cpu_list");
      if (!(level_file >> level) || !(type_file >> type) || !(size_file >> kilobytes)) break;
      shared_file >> shared;
      if (level < 2 || type == "Instruction") continue;
      owners[level].insert(shared);
      sizes[level] = kilobytes << 10;
    }
  }
  std::map<int, std::pair<int64_t, int>> found;
  for (const auto& [level, bytes] : sizes) found[level] = {bytes, static_cast<int>(owners[level].size())};
  return found;
}

std::vector<MemoryLevel> measure_levels() {
  const int threads = ThreadPool::global().threads();
  std::vector<MemoryLevel> levels;
  int64_t below = 0;
  for (const auto& [level, cache] : caches()) {
    const int64_t bytes = cache.first * std::min(cache.second, threads);
    // Half a cache is surely in it; a cache hardly larger than those below it shows nothing of its own.
    if (bytes / 2 <= below) continue;
    levels.push_back({fmt::format("L{}", level), bytes, copy_rate(bytes / 2)});
    below = bytes;
  }
  const int64_t ram = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE);
  const int64_t span = std::min(std::max<int64_t>(int64_t{512} << 20, 8 * below), ram / 4);
  levels.push_back({"RAM", ram, copy_rate(span)});
  return levels;
}

double measure_launch() {
  ThreadPool& pool = ThreadPool::global();
  constexpr int loops = 1000;
  const int threads = pool.threads();
  const double seconds = best_seconds(0.05, [&] {
    for (int i = 0; i < loops; ++i) {
      // Every chunk waits for all others to begin, so that each thread takes one.
      std::atomic<int> begun{0};
      pool.parallel(threads, [&](int64_t) {
        ++begun;
        // With more threads than CPUs the others want this one's.
        for (int spins = 0; begun < threads; ++spins)
          if (spins < 1000)
            _mm_pause();
          else
            std::this_thread::yield();
      });
    }
  });
  return seconds / loops;
}

TileRates tile_rates(double (*loop)(const void*, int64_t, int64_t)) {
  const auto found = caches();
  // Of each thread, surely in the cache that is meant, and in none below it.
  const int64_t l1 = 24 << 10, l2 = found.contains(2) ? found.at(2).first / 2 : int64_t{512} << 10;
  std::vector<Array> operands;
  for (int t = 0; t < ThreadPool::global().threads(); ++t) {
    operands.emplace_back(u8, Shape{l2});
    std::memset(operands.back().data(), 1, static_cast<size_t>(l2));  // small numbers, as either type
  }
  const auto rate = [&](int64_t bytes) {
    return loop_rate([&](int64_t thread, int64_t rounds) {
      return loop(operands[static_cast<size_t>(thread)].data(), bytes, rounds);
    });
  };
  return {rate(0), rate(l1), rate(l2)};
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  return fmt::format("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

/// As they are called in the file.
constexpr std::pair<const char*, double Machine::*> kRates[] = {
    {"fp32_gflops", &Machine::fp32_gflops},
    {"bf16_gflops", &Machine::bf16_gflops},
    {"matmul_fp32_gflops", &Machine::matmul_fp32_gflops},
    {"matmul_bf16_gflops", &Machine::matmul_bf16_gflops}};
constexpr std::pair<const char*, TileRates Machine::*> kTileRates[] = {{"bf16_tiles", &Machine::bf16_tiles},
                                                                       {"int8_tiles", &Machine::int8_tiles}};

}  // namespace

Machine measure_machine() {
  Machine m;
  m.cpu = cpu_name();
  m.threads = ThreadPool::global().threads();
  m.instructions = instructions();
  m.matmul_fp32_gflops = matmul_gflops(f32);
  m.matmul_bf16_gflops = matmul_gflops(bf16);
  constexpr double enough = 0.9;
  m.disturbed = share_of_cpus([&] { m.fp32_gflops = loop_gflops(run_fp32_loop); }) < enough;
  m.fp32_gflops = std::max(m.fp32_gflops, m.matmul_fp32_gflops);
  if (cpu_has("avx512_bf16") || cpu_has("amx_bf16"))
    m.bf16_gflops = std::max(loop_gflops(run_bf16_loop), m.matmul_bf16_gflops);
  if (tiles_allowed()) {
    if (cpu_has("amx_bf16")) m.bf16_tiles = tile_rates(run_bf16_tiles);
    if (cpu_has("amx_int8")) m.int8_tiles = tile_rates(run_int8_tiles);
    m.bf16_gflops = std::max(m.bf16_gflops, m.bf16_tiles.registers);
  }
  m.levels = measure_levels();
  m.launch_seconds = measure_launch();
  m.measured = today();
  return m;
}

std::optional<fs::path> machine_file() {
  const auto folder = cache_folder("machines");
  if (!folder) return std::nullopt;
  std::string name;
  for (const char c : cpu_name())
    if (std::isalnum(static_cast<unsigned char>(c)))
      name += c;
    else if (!name.empty() && name.back() != '-')
      name += '-';
  return *folder / fmt::format("{}-{}-threads.json", name, ThreadPool::global().threads());
}

std::optional<Machine> kept_machine() {
  const auto path = machine_file();
  if (!path || !fs::exists(*path)) return std::nullopt;
  try {
    const nlohmann::json json = nlohmann::json::parse(read_text(*path));
    if (json.at("version") != kVersion) return std::nullopt;
    Machine m;
    m.cpu = json.at("cpu");
    m.threads = json.at("threads");
    m.instructions = instructions();
    for (const auto& [name, rate] : kRates) m.*rate = json.at(name);
    for (const auto& [name, rates] : kTileRates) {
      const nlohmann::json& kept = json.at(name);
      m.*rates = {kept.at("registers"), kept.at("L1"), kept.at("L2")};
    }
    m.launch_seconds = json.at("launch_seconds");
    m.measured = json.at("measured");
    m.disturbed = json.at("disturbed");
    for (const nlohmann::json& level : json.at("levels"))
      m.levels.push_back({level.at("name"), level.at("bytes"), level.at("gb_per_s")});
    if (m.levels.empty() || m.cpu != cpu_name()) return std::nullopt;
    return m;
  } catch (const nlohmann::json::exception&) {  // damaged: measured again
    return std::nullopt;
  } catch (const IoError&) {
    return std::nullopt;
  }
}

void keep_machine(const Machine& m) {
  const auto path = machine_file();
  if (!path) return;
  nlohmann::json json = {{"version", kVersion},
                         {"cpu", m.cpu},
                         {"threads", m.threads},
                         {"launch_seconds", m.launch_seconds},
                         {"measured", m.measured},
                         {"disturbed", m.disturbed},
                         {"levels", nlohmann::json::array()}};
  for (const auto& [name, rate] : kRates) json[name] = m.*rate;
  for (const auto& [name, rates] : kTileRates)
    json[name] = {{"registers", (m.*rates).registers}, {"L1", (m.*rates).l1}, {"L2", (m.*rates).l2}};
  for (const MemoryLevel& level : m.levels)
    json["levels"].push_back({{"name", level.name}, {"bytes", level.bytes}, {"gb_per_s", level.gb_per_s}});
  try {
    write_file(*path, json.dump(2) + "\n");
  } catch (const IoError&) {  // measured again next time
  }
}

Machine better_of(const Machine& one, const Machine& other) {
  Machine best = one;
  for (const auto& [name, rate] : kRates) best.*rate = std::max(one.*rate, other.*rate);
  for (const auto& [name, rates] : kTileRates)
    for (const auto rate : {&TileRates::registers, &TileRates::l1, &TileRates::l2})
      (best.*rates).*rate = std::max((one.*rates).*rate, (other.*rates).*rate);
  best.launch_seconds = std::min(one.launch_seconds, other.launch_seconds);
  best.disturbed = one.disturbed && other.disturbed;
  for (MemoryLevel& level : best.levels)
    for (const MemoryLevel& same : other.levels)
      if (same.name == level.name && same.bytes == level.bytes)
        level.gb_per_s = std::max(level.gb_per_s, same.gb_per_s);
  return best;
}

Machine this_machine(const std::function<Machine()>& measure) {
  const auto kept = kept_machine();
  const auto is_recent = [] {
    constexpr auto soon = std::chrono::minutes(10);
    std::error_code error;
    const auto written = fs::last_write_time(*machine_file(), error);
    return !error && fs::file_time_type::clock::now() - written < soon;
  };
  if (kept && (!kept->disturbed || is_recent())) return *kept;
  Machine machine = measure();
  if (kept) machine = better_of(machine, *kept);
  keep_machine(machine);
  return machine;
}

}  // namespace millrace
