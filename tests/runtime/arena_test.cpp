#include "runtime/arena.h"

#include <cstring>
#include <doctest/doctest.h>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include <millrace/graph.h>
#include <millrace/program.h>

using namespace millrace;

TEST_CASE("who runs after another has its arena, and who runs beside it another one") {
  Arenas arenas;
  const void* first = nullptr;
  {
    const Arenas::Lease lease(arenas, 1000);
    first = lease.memory();
    const Arenas::Lease beside(arenas, 500);
    CHECK(beside.memory() != first);
    CHECK(arenas.bytes() == 1500);
  }
  {
    const Arenas::Lease small(arenas, 400), large(arenas, 800);
    CHECK(large.memory() == first);
    CHECK(small.memory() != first);
  }
  CHECK(arenas.bytes() == 1500);
}

TEST_CASE("a larger arena comes in the place of one that is too small") {
  Arenas arenas;
  (void)Arenas::Lease(arenas, 1000);
  (void)Arenas::Lease(arenas, 3000);
  CHECK(arenas.bytes() == 3000);
  {
    const Arenas::Lease used(arenas, 2000), other(arenas, 100);
    arenas.drop_larger(0);  // somebody runs in them
    CHECK(arenas.bytes() == 3100);
  }
  arenas.drop_larger(2999);
  CHECK(arenas.bytes() == 100);
  arenas.drop_larger(100);
  CHECK(arenas.bytes() == 100);
}

TEST_CASE("programs that take turns with arenas compute as with their own") {
  // Two products with something between, whose results are in the arena; large enough to be shared.
  const auto graph_of = [](int64_t rows) {
    Graph graph;
    const Value x = graph.input("x", {f32, {rows, 96}}), w = graph.input("w", {f32, {96, 96}});
    const Value once = graph.add("matmul", {x, w}), bent = graph.add("tanh", {once});
    graph.set_outputs({graph.add("softmax", {graph.add("matmul", {bent, w})}, {{"axis", int64_t{1}}})},
                      {"y"});
    return graph;
  };
  const auto arenas = std::make_shared<Arenas>();
  std::vector<Program> own, shared;
  const std::vector<int64_t> sizes = {700, 300, 1100};
  for (const int64_t rows : sizes) {
    const auto executable = Executable::compile(graph_of(rows));
    REQUIRE(executable->arena_bytes() > 64 << 10);
    for (std::vector<Program>* list : {&own, &shared}) {
      Program& program =
          list->emplace_back(executable, std::map<int, Array>{}, nullptr, list == &shared ? arenas : nullptr);
      if (list == &shared) {
        CHECK_THROWS_AS(program.run(), TypeError);  // its output is the caller's
        program.bind_output(0, Array(f32, {rows, 96}));
      }
      for (int i = 0; i < 2; ++i) {
        Array& input = program.input(i);
        for (int64_t k = 0; k < input.count(); ++k)
          input.set(k, static_cast<double>((k * 7 + i + rows) % 23) / 23 - 0.4);
      }
    }
  }
  int64_t largest = 0;
  for (Program& program : own) {
    program.run();
    largest = std::max(largest, program.arena_bytes());
  }
  for (const size_t p : {0, 1, 2, 1, 0, 2}) {
    shared[p].run();
    CHECK(shared[p].output(0).identical(own[p].output(0)));
  }
  CHECK(arenas->bytes() == largest);
  std::vector<std::thread> threads;
  std::vector<int> right(3);
  for (size_t p = 0; p < 3; ++p)
    threads.emplace_back([&, p] {
      for (int k = 0; k < 20; ++k) {
        shared[p].run();
        right[p] += shared[p].output(0).identical(own[p].output(0));
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(right == std::vector<int>{20, 20, 20});
}
