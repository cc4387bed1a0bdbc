#include "plan/rows.h"

#include <doctest/doctest.h>

#include "ops/build.h"

using namespace millrace;

namespace {

/// x f32[4, 3] by rows, and y of all of them: y's numbers are added to those of x.
std::optional<Graph> cut(const Shape& y, bool rows_of_y) {
  Graph body;
  ops::Build b(body);
  const Value x = body.input("x", {f32, {4, 3}}), more = body.input("y", {f32, y});
  body.set_outputs({b.add(x, b.broadcast(more, {4, 3}))});
  return with_rows(body, {1, static_cast<char>(rows_of_y)}, 2);
}

}  // namespace

TEST_CASE("a loop's body is cut by rows where no row needs another one") {
  for (const Shape& alike : std::vector<Shape>{{3}, {1, 3}, {1, 1}, {}}) {
    const auto half = cut(alike, false);
    REQUIRE_MESSAGE(half, alike.str());
    CHECK(half->type(half->outputs()[0]) == Type{f32, {2, 3}});
  }
  CHECK(cut({4, 1}, true));
  // Each row has a number of its own, which is not told to be by rows.
  CHECK(!cut({4, 1}, false));
}
