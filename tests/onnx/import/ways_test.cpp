// Operators that are written in different ways, by what they are told, against loops over elements.
#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include <millrace/operator.h>
#include <millrace/random.h>

#include "base/wire.h"
#include "onnx/writer.h"
#include "support/onnx_run.h"

using namespace millrace;

namespace {

using Ints = std::vector<int64_t>;
using Doubles = std::vector<double>;

WireWriter ints_attribute(const std::string& name, const Ints& values) {
  WireWriter attribute = WireWriter().bytes(1, name);
  for (const int64_t value : values) attribute.integer(8, value);
  return attribute.varint(20, 7);
}
WireWriter whole_attribute(const std::string& name, int64_t value) {
  return WireWriter().bytes(1, name).integer(3, value).varint(20, 2);
}
WireWriter text_attribute(const std::string& name, const std::string& text) {
  return WireWriter().bytes(1, name).bytes(4, text).varint(20, 3);
}

/// y = Op(x, other) of f32 (1) or i64 (7).
Array computed(const std::string& op, const Array& x, const Array& other,
               const std::vector<WireWriter>& attributes) {
  WireWriter node = WireWriter().bytes(1, "x").bytes(1, "other").bytes(2, "y").bytes(4, op);
  for (const WireWriter& each : attributes) node.message(5, each);
  WireWriter shape;
  for (const Dim& size : x.shape()) shape.message(1, WireWriter().integer(1, size.size()));
  const WireWriter tensor = WireWriter().varint(1, x.dtype() == f32 ? 1 : 7).message(2, shape);
  const WireWriter graph =
      WireWriter()
          .message(1, node)
          .message(5, onnx::tensor_message("other", other))
          .message(11, WireWriter().bytes(1, "x").message(2, WireWriter().message(1, tensor)))
          .message(12, WireWriter().bytes(1, "y"));
  const std::string bytes =
      WireWriter().varint(1, 10).message(7, graph).message(8, WireWriter().bytes(1, "").varint(2, 21)).text();
  return test::run_model(onnx::parse_model(bytes, "m.onnx"), {{"x", test::HostValue::of(x)}})
      .outputs[0]
      .array;
}

/// Whole numbers, so that sums are exact.
Array some_numbers(DType dtype, const Shape& shape, uint64_t seed = 1) {
  RandomStream random(seed, 3);
  Doubles values;
  for (int64_t i = 0; i < shape.count(); ++i) values.push_back(static_cast<double>(random.below(19)) - 9);
  return Array::of(dtype, shape, values);
}

/// The position of each element of a shape, in order.
std::vector<Ints> positions(const Ints& sizes) {
  std::vector<Ints> all{{}};
  for (const int64_t size : sizes) {
    std::vector<Ints> longer;
    for (const Ints& each : all)
      for (int64_t i = 0; i < size; ++i) {
        longer.push_back(each);
        longer.back().push_back(i);
      }
    all = std::move(longer);
  }
  return all;
}

int64_t place_of(const Ints& position, const Ints& sizes) {
  int64_t place = 0;
  for (size_t d = 0; d < sizes.size(); ++d) place = place * sizes[d] + position[d];
  return place;
}

struct Transposed {
  Ints size, kernel, strides, before = {0, 0, 0}, behind = {0, 0, 0}, extra = {0, 0, 0},
                              dilations = {1, 1, 1};
  int64_t groups = 1;
};

/// Of 2 pictures with 2 channels a group, 3 come out.
void check_transposed(const Transposed& t) {
  const int64_t from = 2 * t.groups, to = 3;
  const Ints x_sizes{2, from, t.size[0], t.size[1], t.size[2]},
      w_sizes{from, to, t.kernel[0], t.kernel[1], t.kernel[2]};
  const Array x = some_numbers(f32, Shape(x_sizes)), w = some_numbers(f32, Shape(w_sizes), 2);
  Ints sizes{2, to * t.groups}, pads = t.before;
  for (size_t d = 0; d < 3; ++d)
    sizes.push_back(t.strides[d] * (t.size[d] - 1) + t.extra[d] + (t.kernel[d] - 1) * t.dilations[d] + 1 -
                    t.before[d] - t.behind[d]);
  pads.insert(pads.end(), t.behind.begin(), t.behind.end());
  Doubles should(static_cast<size_t>(Shape(sizes).count()), 0);
  for (const Ints& at : positions(x_sizes))
    for (const Ints& k : positions({to, t.kernel[0], t.kernel[1], t.kernel[2]})) {
      Ints y{at[0], at[1] / 2 * to + k[0]};
      bool inside = true;
      for (size_t d = 0; d < 3; ++d) {
        y.push_back(at[d + 2] * t.strides[d] + k[d + 1] * t.dilations[d] - t.before[d]);
        inside = inside && y[d + 2] >= 0 && y[d + 2] < sizes[d + 2];
      }
      if (inside)
        should[static_cast<size_t>(place_of(y, sizes))] +=
            x.at(place_of(at, x_sizes)) * w.at(place_of({at[1], k[0], k[1], k[2], k[3]}, w_sizes));
    }
  const Array is = computed("ConvTranspose", x, w,
                            {ints_attribute("strides", t.strides), ints_attribute("pads", pads),
                             ints_attribute("dilations", t.dilations),
                             ints_attribute("output_padding", t.extra), whole_attribute("group", t.groups)});
  CHECK(is.shape() == Shape(sizes));
  CHECK(is.to_doubles() == should);
}

}  // namespace

TEST_CASE("transposed convolutions of three dimensions add up what windows write") {
  SUBCASE("windows that do not meet") {
    check_transposed({.size = {3, 2, 4}, .kernel = {2, 2, 2}, .strides = {2, 2, 2}});
    check_transposed({.size = {3, 2, 3}, .kernel = {2, 3, 2}, .strides = {2, 2, 1}, .groups = 2});
    check_transposed({.size = {3, 2, 2}, .kernel = {1, 3, 3}, .strides = {1, 2, 2}, .behind = {0, 1, 0}});
  }
  SUBCASE("windows as long as a step, but apart, or cut") {
    check_transposed({.size = {3, 2, 2},
                      .kernel = {2, 2, 2},
                      .strides = {2, 2, 2},
                      .behind = {1, 0, 0},
                      .dilations = {2, 1, 1}});
    check_transposed({.size = {3, 2, 2}, .kernel = {2, 2, 2}, .strides = {2, 2, 2}, .before = {1, 0, 0}});
    check_transposed({.size = {3, 2, 2}, .kernel = {2, 2, 2}, .strides = {2, 2, 2}, .extra = {1, 0, 1}});
  }
  SUBCASE("windows that meet") {
    check_transposed({.size = {3, 2, 4},
                      .kernel = {3, 3, 3},
                      .strides = {2, 2, 2},
                      .before = {1, 1, 1},
                      .behind = {1, 1, 1},
                      .extra = {1, 1, 1}});
    check_transposed({.size = {2, 3, 3},
                      .kernel = {4, 3, 2},
                      .strides = {3, 2, 1},
                      .before = {2, 1, 0},
                      .behind = {1, 0, 1},
                      .extra = {1, 1, 0},
                      .groups = 2});
    check_transposed({.size = {1, 2, 2}, .kernel = {5, 1, 2}, .strides = {2, 1, 1}, .before = {3, 0, 0}});
  }
  SUBCASE("steps wider than windows") {
    check_transposed({.size = {2, 2, 2}, .kernel = {1, 2, 1}, .strides = {3, 2, 2}, .extra = {2, 0, 1}});
    check_transposed({.size = {2, 2, 1}, .kernel = {2, 1, 1}, .strides = {5, 1, 1}, .before = {1, 0, 0}});
    check_transposed({.size = {1, 2, 1}, .kernel = {2, 1, 1}, .strides = {1'000'000'000, 1, 1}});
  }
  SUBCASE("steps of 1") {
    check_transposed({.size = {3, 2, 4},
                      .kernel = {3, 2, 2},
                      .strides = {1, 1, 1},
                      .before = {1, 0, 1},
                      .behind = {0, 1, 0},
                      .groups = 2});
  }
}

TEST_CASE("what is padded by what a tensor holds has that around it") {
  const auto check = [](const Ints& sizes, const Ints& before, const Ints& behind) {
    const Array x = some_numbers(f32, Shape(sizes));
    Ints wide = sizes, pads = before;
    for (size_t d = 0; d < sizes.size(); ++d) wide[d] += before[d] + behind[d];
    pads.insert(pads.end(), behind.begin(), behind.end());
    const Array told = Array::of(i64, {static_cast<int64_t>(pads.size())}, Doubles(pads.begin(), pads.end()));
    for (const std::string mode : {"reflect", "edge", "wrap"}) {
      CAPTURE(mode);
      Doubles should;
      for (Ints at : positions(wide)) {
        for (size_t d = 0; d < sizes.size(); ++d) {
          const int64_t size = sizes[d], i = at[d] - before[d];
          const int64_t turn = (i + 8 * size) % size, period = std::max<int64_t>(1, 2 * size - 2),
                        back = (i + 8 * period) % period;
          at[d] = mode == "edge"   ? std::clamp<int64_t>(i, 0, size - 1)
                  : mode == "wrap" ? turn
                                   : std::min(back, period - back);
          if (size == 1) at[d] = 0;
        }
        should.push_back(x.at(place_of(at, sizes)));
      }
      const Array is = computed("Pad", x, told, {text_attribute("mode", mode)});
      CHECK(is.shape() == Shape(wide));
      CHECK(is.to_doubles() == should);
    }
  };
  check({2, 3, 4, 5}, {0, 0, 1, 2}, {0, 0, 3, 1});
  check({3, 2, 4}, {1, 0, 2}, {0, 0, 7});  // the axis between them stays
  check({2, 1, 3}, {0, 2, 0}, {0, 1, 0});
  // More places than are written out.
  check({520, 1, 2040}, {1, 0, 0}, {0, 0, 2});
}

TEST_CASE("running sums go along any axis, over wide rows too") {
  const auto check = [](DType dtype, const Ints& sizes, size_t axis, bool reverse, bool exclusive) {
    const Array x = some_numbers(dtype, Shape(sizes));
    Doubles should;
    for (const Ints& at : positions(sizes)) {
      double sum = 0;
      for (Ints other = at; other[axis] >= 0 && other[axis] < sizes[axis]; other[axis] += reverse ? 1 : -1)
        if (other != at || !exclusive) sum += x.at(place_of(other, sizes));
      should.push_back(sum);
    }
    const Array is = computed("CumSum", x, Array::scalar(i64, static_cast<double>(axis)),
                              {whole_attribute("reverse", reverse), whole_attribute("exclusive", exclusive)});
    CHECK(is.dtype() == dtype);
    CHECK(is.to_doubles() == should);
  };
  for (const bool reverse : {false, true})
    for (const bool exclusive : {false, true})
      for (const DType dtype : {f32, i64}) {
        check(dtype, {7, 33}, 0, reverse, exclusive);
        check(dtype, {3, 5, 4, 8}, 1, reverse, exclusive);
        check(dtype, {3, 5, 4}, 1, reverse, exclusive);
        check(dtype, {3, 5}, 1, reverse, exclusive);
      }
  check(f32, {0, 5, 32}, 1, false, false);
  // Many small numbers behind a large one count.
  Doubles large(static_cast<size_t>(65 * 32), 1);
  std::fill_n(large.begin(), 32, 0x1p24);
  const Array sums = computed("CumSum", Array::of(f32, {65, 32}, large), Array::scalar(i64, 0), {});
  CHECK(sums.at(64 * 32 + 5) == 0x1p24 + 64);
}
