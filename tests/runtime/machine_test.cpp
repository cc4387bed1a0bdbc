#include "runtime/machine.h"

#include <cstring>
#include <doctest/doctest.h>
#include <vector>

#include <millrace/array.h>

#include "base/cpu.h"
#include "base/file.h"
#include "runtime/machine_loops.h"
#include "support/cache_variable.h"

using namespace millrace;

TEST_CASE("the measuring loops do what they count, and copies are copies") {
  CHECK(run_fp32_loop(1) > 0);
  CHECK(run_fp32_loop(10) == 10 * run_fp32_loop(1));
  CHECK((run_bf16_loop(1) > 0) == cpu_has("avx512_bf16"));
  if (tiles_allowed()) {
    const std::vector<char> operands(3 * 4096 + 100, 1);
    for (const int64_t bytes : {int64_t{0}, int64_t{4096}, std::ssize(operands)}) {
      if (cpu_has("amx_bf16")) CHECK(run_bf16_tiles(operands.data(), bytes, 7) == 7 * 65536.0);
      if (cpu_has("amx_int8")) CHECK(run_int8_tiles(operands.data(), bytes, 7) == 7 * 131072.0);
    }
  }
  for (const int64_t size : {0, 1, 255, 256, 1000, 70000})
    for (const bool stream : {false, true}) {
      Array from(u8, {size + 1}), to(u8, {size + 1});
      for (int64_t i = 0; i < size; ++i) from.as<uint8_t>()[i] = static_cast<uint8_t>(i * 7 + 1);
      to.as<uint8_t>()[size] = 77;
      copy_vectors(to.data(), from.data(), static_cast<size_t>(size), stream);
      CHECK(std::memcmp(to.data(), from.data(), static_cast<size_t>(size)) == 0);
      CHECK(to.as<uint8_t>()[size] == 77);
    }
}

TEST_CASE("a machine's figures are kept, and what cannot be read is measured again") {
  const testing::CacheVariable cache;
  CHECK(!kept_machine());
  Machine m;
  m.fp32_gflops = 100;
  m.bf16_tiles = {1000, 900, 800};
  m.levels = {{"L2", 2 << 20, 80}, {"RAM", int64_t{8} << 30, 10}};
  m.measured = "2026-05-01";
  m.cpu = "another CPU";
  keep_machine(m);
  CHECK(!kept_machine());
  m.cpu = cpu_name();
  keep_machine(m);
  const auto kept = kept_machine();
  REQUIRE(kept);
  CHECK(kept->fp32_gflops == 100);
  CHECK(kept->bf16_tiles.registers == 1000);
  CHECK(kept->bf16_tiles.l1 == 900);
  CHECK(kept->bf16_tiles.l2 == 800);
  CHECK(kept->int8_tiles.registers == 0);
  CHECK(kept->gflops(16) == 100);  // no bf16 units: at the rate of fp32
  REQUIRE(kept->levels.size() == 2);
  CHECK(kept->levels[0].name == "L2");
  CHECK(kept->ram().bytes == int64_t{8} << 30);
  CHECK(kept->measured == "2026-05-01");

  const auto path = machine_file();
  REQUIRE(path);
  std::string text = read_text(*path);
  write_file(*path, text.substr(0, text.size() / 2));
  CHECK(!kept_machine());
  const size_t version = text.find("\"version\": 4");
  REQUIRE(version != std::string::npos);
  text.replace(version, 12, "\"version\": 0");
  write_file(*path, text);
  CHECK(!kept_machine());
}

TEST_CASE("figures of a busy machine give way to better ones, of each the better") {
  const testing::CacheVariable cache;
  Machine busy;
  busy.cpu = cpu_name();
  busy.fp32_gflops = 1e-3;
  busy.bf16_gflops = 1e12;
  busy.launch_seconds = 10;
  busy.levels = {{"RAM", 1, 5}};
  busy.measured = "2026-05-01";
  busy.disturbed = true;
  keep_machine(busy);
  int measured = 0;
  const auto measure = [&] {
    ++measured;
    Machine fresh = busy;
    fresh.fp32_gflops = 100;
    fresh.bf16_gflops = 200;
    fresh.launch_seconds = 1e-6;
    fresh.levels = {{"L2", 1, 8}, {"RAM", 1, 3}};
    fresh.measured = "2026-05-02";
    fresh.disturbed = false;
    return fresh;
  };
  CHECK(this_machine(measure).measured == "2026-05-01");  // a moment ago: not again and again
  CHECK(measured == 0);
  const auto path = machine_file();
  REQUIRE(path);
  std::filesystem::last_write_time(*path,
                                   std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  const Machine now = this_machine(measure);
  CHECK(now.measured == "2026-05-02");
  CHECK(now.fp32_gflops == 100);
  CHECK(now.bf16_gflops == 1e12);
  CHECK(now.launch_seconds == 1e-6);
  CHECK(now.levels.size() == 2);
  CHECK(now.ram().gb_per_s == 5);
  CHECK(!now.disturbed);
  REQUIRE(kept_machine());
  CHECK(kept_machine()->fp32_gflops == now.fp32_gflops);
  CHECK(this_machine(measure).measured == "2026-05-02");
  CHECK(measured == 1);

  Machine calm = busy;
  calm.disturbed = false;
  calm.bf16_tiles = {1000, 900, 800};
  busy.bf16_tiles = {1100, 700, 600};
  calm.levels = {{"L2", 1, 9}, {"RAM", 1, 3}};
  const Machine best = better_of(calm, busy);
  CHECK(!best.disturbed);
  CHECK(best.bf16_tiles.registers == 1100);
  CHECK(best.bf16_tiles.l1 == 900);
  CHECK(best.levels[0].gb_per_s == 9);
  CHECK(best.levels[1].gb_per_s == 5);
}
