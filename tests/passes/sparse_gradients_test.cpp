#include <doctest/doctest.h>

#include <millrace/program.h>
#include <millrace/random.h>

#include "backend/ref/evaluate.h"
#include "ops/build.h"
#include "support/random_graph.h"

using namespace millrace;

namespace {

// As large as the pass wants a table to be.
constexpr int64_t kRows = 40000, kWidth = 32, kIds = 50;

/// The sum over a table of first · second, two gradients of lookups.
Graph product_of_sums(bool same) {
  Graph graph;
  ops::Build b(graph);
  const Value zeros = b.broadcast(graph.scalar(f32, 0), {kRows, kWidth});
  const auto gradient = [&](const char* ids, const char* updates) {
    const Value where = graph.input(ids, {i64, {kIds}}), what = graph.input(updates, {f32, {kIds, kWidth}});
    return graph.add("scatter_add", {zeros, where, what}, {{"axis", int64_t{0}}});
  };
  const Value first = gradient("ids", "updates"), second = same ? first : gradient("others", "more");
  graph.set_outputs({b.sum(b.mul(first, second), {}, false)});
  return graph;
}

}  // namespace

TEST_CASE(
    "the product of two sparse gradients is one over the rows of both, of one with itself over its own") {
  for (const bool same : {true, false}) {
    CAPTURE(same);
    const Graph graph = product_of_sums(same);
    Program program = Program::compile(graph, {});
    CHECK(program.arena_bytes() < kRows * kWidth * 4);  // rows alone
    RandomStream random(5, 1);
    std::vector<Array> inputs;
    for (const Value& input : graph.inputs()) {
      inputs.emplace_back(graph.type(input));
      for (int64_t i = 0; i < inputs.back().count(); ++i)
        inputs.back().dtype() == i64 ? inputs.back().set_int(i, random.below(60))
                                     : inputs.back().set(i, random.uniform() - 0.5);
    }
    const double expected = ref::evaluate(graph, inputs)[0].at(0);
    CHECK(expected != 0);
    CHECK(test::run(program, inputs)[0].at(0) == doctest::Approx(expected).epsilon(1e-4));
  }
}
