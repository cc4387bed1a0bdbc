// Code that is compiled once and does for any length of the slowest loop.
#include <algorithm>
#include <cstring>
#include <doctest/doctest.h>

#include "backend/cpu/codegen/jit.h"
#include "base/cpu.h"
#include "support/cache_variable.h"
#include "support/codegen_support.h"
#include "support/random_graph.h"
#include "target/provider.h"

using namespace millrace;
using codegen::code_counts;

namespace {

/// Whether an array is how another begins.
bool begins(const Array& part, const Array& whole) {
  return std::memcmp(part.data(), whole.data(), static_cast<size_t>(part.bytes())) == 0;
}

Array beginning(const Array& whole, int64_t rows) {
  Shape shape = whole.shape();
  shape[0] = Dim(rows);
  Array part(whole.dtype(), shape);
  std::memcpy(part.data(), whole.data(), static_cast<size_t>(part.bytes()));
  return part;
}

/// x · c + tanh(x). In f64 tanh is a function of the C library, which is called for each lane.
Graph flat(DType dtype, int64_t n) {
  Graph graph;
  const Value x = graph.input("x", {dtype, {n}});
  const Value c = graph.add("broadcast", {graph.scalar(dtype, 0.59375)}, {{"shape", Shape{n}}});
  graph.set_outputs({graph.add("add", {graph.add("mul", {x, c}), graph.add("tanh", {x})})});
  return graph;
}

/// Each row times a vector, and the sum of that.
Graph of_rows(int64_t rows, int64_t columns) {
  Graph graph;
  const Value x = graph.input("x", {f32, {rows, columns}}), y = graph.input("y", {f32, {columns}});
  const Value spread = graph.add("broadcast", {graph.add("reshape", {y}, {{"shape", Shape{1, columns}}})},
                                 {{"shape", Shape{rows, columns}}});
  const Value scaled = graph.add("mul", {x, spread});
  graph.set_outputs({graph.add("sum", {scaled}, {{"axes", std::vector<int64_t>{1}}})});
  return graph;
}

}  // namespace

TEST_CASE("One code computes element-wise groups of any length, as long ones") {
  for (const DType dtype : {f32, bf16, f64}) {
    const testing::CacheVariable cache;
    constexpr int64_t most = 20011;
    const Array x = random_array({dtype, {most}}, 7);
    const Array whole = run_fused(flat(dtype, most), std::vector<Array>{x})[0];
    const auto compiled = code_counts().compiled;
    std::vector<int64_t> lengths = {1, 2, 3, 4096, 8191, 8192, 8193, 9216, 10241};
    for (int64_t n = 15; n < 140; ++n) lengths.push_back(n);
    for (int64_t n = 1000; n < 1070; n += 3) lengths.push_back(n);
    for (const int64_t n : lengths)
      for (const int threads : {1, 3}) {
        CAPTURE(dtype.name());
        CAPTURE(n);
        const std::vector<Array> part{beginning(x, n)};
        const Array got = run_fused(flat(dtype, n), part, {.threads = threads})[0];
        // Without masks a tail is code of its own, which for a single element may round otherwise.
        if (cpu_has("avx512bw"))
          CHECK(begins(got, whole));
        else
          CHECK(test::difference(got, beginning(whole, n)) < (dtype == bf16 ? 0.01 : 1e-6));
      }
    // Several widths of vectors and bounds; without masks and where a library is called, the tails too.
    if (cpu_has("avx512bw") && dtype != f64)
      CHECK(code_counts().compiled - compiled <= 16);
    else
      CHECK(code_counts().compiled - compiled < static_cast<int64_t>(lengths.size()));
  }
}

TEST_CASE("One code computes any number of rows") {
  const testing::CacheVariable cache;
  constexpr int64_t columns = 83;
  const Array x = random_array({f32, {200, columns}}, 8), y = random_array({f32, {columns}}, 9);
  const Array whole = run_fused(of_rows(200, columns), std::vector<Array>{x, y})[0];
  const auto compiled = code_counts().compiled;
  for (int64_t rows = 20; rows < 200; rows += 7) {
    CAPTURE(rows);
    const std::vector<Array> part{beginning(x, rows), y};
    CHECK(begins(run_fused(of_rows(rows, columns), part)[0], whole));
  }
  CHECK(code_counts().compiled == compiled);
}

TEST_CASE("Small products with blocks of one height share code, however many rows there are") {
  const testing::CacheVariable cache;
  const auto provider = cpu::providers().at("small-matmul").make();
  constexpr int64_t most = 90, k = 37, n = 80;
  const Array a = random_array({f32, {most, k}}, 10), b = random_array({f32, {k, n}}, 11);
  const auto product = [&](int64_t m) {
    Graph graph;
    const Value left = graph.input("a", {f32, {m, k}}), right = graph.input("b", {f32, {k, n}});
    const Value y = graph.add("matmul", {left, right});
    graph.set_outputs({y});
    const auto kernel = provider->build({graph, graph.node(y), {{}, {}}, {{}}});
    return run_kernel(*kernel, graph, std::vector<Array>{beginning(a, m), b})[0];
  };
  const Array whole = product(most);
  const auto compiled = code_counts().compiled;
  for (int64_t m = 13; m < most; ++m) {
    CAPTURE(m);
    CHECK(begins(product(m), whole));
  }
  CHECK(code_counts().compiled - compiled <= 9);
}
