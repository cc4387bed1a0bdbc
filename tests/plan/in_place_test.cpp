#include <doctest/doctest.h>

#include <millrace/program.h>

#include "ops/build.h"

using namespace millrace;

TEST_CASE("results of a chain take the memory of what they are computed from, to its end") {
  // One row: launches of several would follow each other row by row.
  const auto arena = [](int norms, bool kept) {
    Graph graph;
    ops::Build b(graph);
    Value y = graph.input("x", {f32, {1, 16384}}), first;
    for (int i = 0; i < norms; ++i) {
      y = graph.add("layer_norm", {y});
      if (i == 0) first = y;
    }
    graph.set_outputs({kept ? graph.add("layer_norm", {b.add(y, first)}) : graph.add("layer_norm", {y})});
    return Program::compile(graph).arena_bytes();
  };
  const int64_t one = arena(1, false);
  CHECK(one >= 65536);
  CHECK(one < 2 * 65536);
  CHECK(arena(6, false) == one);
  // What is read at the end has memory of its own.
  CHECK(arena(6, true) >= 2 * 65536);
}
