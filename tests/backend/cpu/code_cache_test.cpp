#include <cmath>
#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <thread>

#include "backend/cpu/codegen/jit.h"
#include "base/file.h"
#include "support/cache_variable.h"
#include "support/codegen_support.h"
#include "support/random_graph.h"

using namespace millrace;
using codegen::code_counts;
using codegen::CodeCounts;

namespace {

/// $MILLRACE_CACHE set to a folder of its own while the object lives.
struct CacheFolder : testing::CacheVariable {
  std::vector<std::filesystem::path> files() const {
    std::vector<std::filesystem::path> all;
    for (const auto& entry : std::filesystem::directory_iterator(path() / "kernels"))
      all.push_back(entry.path());
    return all;
  }
};

/// A body that no other test compiles.
Graph body(int64_t n, double constant) {
  Graph graph;
  const Value x = graph.input("x", {f32, {n}});
  const Value c = graph.add("broadcast", {graph.scalar(f32, constant)}, {{"shape", Shape{n}}});
  graph.set_outputs({graph.add("tanh", {graph.add("mul", {x, c})})});
  return graph;
}

}  // namespace

TEST_CASE("Compiled nests come back from memory and from disk with the same results") {
  const CacheFolder cache;
  const Graph graph = body(1237, 0.8125);
  const std::vector<Array> input{random_array({f32, {1237}}, 1)};
  const CodeCounts start = code_counts();
  const Array first = run_fused(graph, input)[0];
  CHECK(code_counts().compiled == start.compiled + 1);
  REQUIRE(cache.files().size() == 1);

  CHECK(run_fused(graph, input)[0].identical(first));
  CHECK(code_counts().from_memory == start.from_memory + 1);

  codegen::forget_unused_code();
  CHECK(run_fused(graph, input)[0].identical(first));
  CHECK(code_counts().from_disk == start.from_disk + 1);
  CHECK(code_counts().compiled == start.compiled + 1);
}

TEST_CASE("A damaged file of the code cache is passed over and written anew") {
  const CacheFolder cache;
  const Graph graph = body(1239, 0.4375);
  const std::vector<Array> input{random_array({f32, {1239}}, 1)};
  const Array first = run_fused(graph, input)[0];
  REQUIRE(cache.files().size() == 1);
  const auto path = cache.files()[0];
  const std::vector<uint8_t> good = read_file(path);

  std::vector<std::vector<uint8_t>> damaged{
      {}, {good.begin(), good.begin() + 20}, {good.begin(), good.end() - 1}};
  for (const size_t at : {size_t{0}, size_t{9}, size_t{60}, good.size() / 2, good.size() - 1}) {
    damaged.push_back(good);
    damaged.back()[at] ^= 0x10;
  }
  for (const auto& bytes : damaged) {
    write_file(path, bytes);
    codegen::forget_unused_code();
    const CodeCounts before = code_counts();
    CHECK(run_fused(graph, input)[0].identical(first));
    CHECK(code_counts().compiled == before.compiled + 1);
    CHECK(read_file(path) == good);
  }
}

TEST_CASE("A code cache that cannot be written is passed over") {
  const CacheFolder cache;
  write_file(cache.path() / "kernels", std::string_view("a file where the folder should be"));
  const Graph graph = body(1241, 0.6875);
  const std::vector<Array> input{random_array({f32, {1241}}, 1)};
  CHECK(test::difference(run_fused(graph, input)[0], run_fused(graph, input)[0]) == 0);
}

TEST_CASE("Threads may compile at the same time, the same nest too") {
  const CacheFolder cache;
  std::vector<std::thread> threads;
  std::vector<int> right(6);
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      for (int k = 0; k < 4; ++k) {
        const Graph graph = body(500 + k, 0.3125);
        const std::vector<Array> input{random_array({f32, {500 + k}}, 1)};
        const Array got = run_fused(graph, input, {.threads = 1})[0];
        if (std::abs(got.at(499) - std::tanh(input[0].at(499) * 0.3125)) < 1e-6) ++right[t];
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const int count : right) CHECK(count == 4);
}
