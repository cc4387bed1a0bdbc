#include "ir/bind.h"

#include <doctest/doctest.h>

#include <millrace/error.h>

using namespace millrace;

TEST_CASE("a named dimension is found once, and is the same everywhere") {
  const Type wanted{f32, {Dim::named("batch"), 3}}, other{f32, {2, Dim::named("batch")}};
  Bindings found;
  bind_dimensions("x", wanted, Array(f32, {4, 3}), found);
  CHECK(found == Bindings{{"batch", 4}});
  CHECK_NOTHROW(bind_dimensions("y", other, Array(f32, {2, 4}), found));
  CHECK_THROWS_WITH_AS(bind_dimensions("y", other, Array(f32, {2, 5}), found),
                       "input 'y' is f32[2, 5]: 'batch' is 5 there, and 4 elsewhere", TypeError);
  CHECK_THROWS_WITH_AS(bind_dimensions("y", other, Array(f32, {3, 4}), found),
                       "input 'y' is f32[3, 4], the model takes f32[2, batch]", TypeError);
  for (const Array& wrong : {Array(f32, {4, 2}), Array(f64, {4, 3}), Array(f32, {4, 3, 1})})
    CHECK_THROWS_AS(bind_dimensions("x", wanted, wrong, found), TypeError);
  const Type product{f32, {Dim(2) * Dim::named("batch")}};
  CHECK_THROWS_WITH_AS(bind_dimensions("z", product, Array(f32, {8}), found),
                       doctest::Contains("an input's dimensions are numbers or names"), TypeError);
}
