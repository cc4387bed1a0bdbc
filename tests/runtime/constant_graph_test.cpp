#include "runtime/constant_graph.h"

#include <cstring>
#include <doctest/doctest.h>

#include "backend/ref/evaluate.h"
#include "ops/build.h"

using namespace millrace;

TEST_CASE("graphs of constants: small ones and large ones give what the reference does") {
  for (const int64_t length : {5, 1500}) {
    CAPTURE(length);
    Graph graph;
    ops::Build b(graph);
    Array places(i64, {length});
    for (int64_t i = 0; i < length; ++i) places.set_int(i, i);
    const Value all = graph.constant(places);
    const Shape square{length, length};
    const Value row = b.broadcast(b.reshape(all, {1, length}), square),
                column = b.broadcast(b.reshape(all, {length, 1}), square);
    const Value hidden = b.binary("less", column, row);
    const Value distance = b.cast(b.binary("sub", column, row), f32);
    const Value scale = b.broadcast(graph.constant(Array::full(f32, {}, -0.25)), square);
    graph.set_outputs({hidden, b.binary("mul", distance, scale), all});
    const std::vector<Array> expected = ref::evaluate(graph, {}), got = evaluate_constant_graph(graph);
    REQUIRE(got.size() == expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      REQUIRE(got[i].type() == expected[i].type());
      CHECK(std::memcmp(got[i].data(), expected[i].data(), static_cast<size_t>(got[i].bytes())) == 0);
    }
  }
}
