#include "data/augment/augment.h"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <numeric>
#include <set>

#include <millrace/error.h>

#include "data/codecs/pictures/frame.h"

using namespace millrace;
using namespace millrace::data;

namespace {

using Bytes = std::vector<uint8_t>;

Bytes apply(const std::vector<std::string>& list, const Extent& extent, const Bytes& in, int64_t epoch,
            int64_t position, int64_t index = 0, uint64_t seed = 1) {
  Bytes out(in.size(), 99), scratch;
  Augmenter(list).apply(extent, in.data(), out.data(), {seed, epoch, position, index}, scratch);
  return out;
}

Bytes ramp(const Extent& extent) {
  Bytes bytes(extent.bytes());
  std::iota(bytes.begin(), bytes.end(), uint8_t{1});
  return bytes;
}

}  // namespace

TEST_CASE("pad-crop gives exactly the crops of the padded picture, all of them") {
  const Extent extent{2, 4, 5};
  const Bytes in = ramp(extent);
  for (const bool zero : {false, true}) {
    // The padded picture, written down naively.
    std::set<Bytes> expected, found;
    const auto at = [&](int c, int y, int x) -> uint8_t {
      const bool inside = y >= 0 && y < 4 && x >= 0 && x < 5;
      if (zero && !inside) return 0;
      y = y < 0 ? -y : y > 3 ? 6 - y : y;
      x = x < 0 ? -x : x > 4 ? 8 - x : x;
      return in[c * 20 + y * 5 + x];
    };
    for (int down = -2; down <= 2; ++down)
      for (int right = -2; right <= 2; ++right) {
        Bytes crop;
        for (int c = 0; c < 2; ++c)
          for (int y = 0; y < 4; ++y)
            for (int x = 0; x < 5; ++x) crop.push_back(at(c, y + down, x + right));
        expected.insert(crop);
      }
    for (int position = 0; position < 500; ++position)
      found.insert(apply({zero ? "pad-crop 2 zero" : "pad-crop 2"}, extent, in, 0, position));
    CHECK(found == expected);
  }
}

TEST_CASE("flip mirrors half of the samples") {
  const Extent extent{1, 2, 3};
  const Bytes in = {1, 2, 3, 4, 5, 6}, mirrored = {3, 2, 1, 6, 5, 4};
  int flips = 0;
  for (int position = 0; position < 1000; ++position) {
    const Bytes out = apply({"flip"}, extent, in, 0, position);
    CHECK((out == in || out == mirrored));
    flips += out == mirrored;
  }
  CHECK(flips > 420);
  CHECK(flips < 580);
}

TEST_CASE("alternating-flip shows each sample mirrored every other epoch, half of them at first") {
  const Extent extent{1, 1, 2};
  const Bytes in = {1, 2};
  int first = 0;
  for (int64_t index = 0; index < 1000; ++index) {
    const Bytes even = apply({"alternating-flip"}, extent, in, 0, index * 7, index);
    CHECK(apply({"alternating-flip"}, extent, in, 1, index, index) != even);
    CHECK(apply({"alternating-flip"}, extent, in, 2, 3, index) == even);
    first += even != in;
  }
  CHECK(first > 420);
  CHECK(first < 580);
}

TEST_CASE(
    "random-shift continues the edges, cutout hides a square under the mean, rotate 0 changes nothing") {
  const Extent extent{1, 6, 6};
  const Bytes in = ramp(extent), flat(36, 200);
  std::set<Bytes> shifts;
  for (int position = 0; position < 300; ++position) {
    shifts.insert(apply({"random-shift 1"}, extent, in, 0, position));
    CHECK(apply({"random-shift 3"}, extent, flat, 0, position) == flat);
    CHECK(apply({"rotate 180"}, extent, flat, 0, position) == flat);
    CHECK(apply({"rotate 0"}, extent, in, 0, position) == in);
    const Bytes cut = apply({"cutout 3"}, extent, in, 0, position);
    int changed = 0;
    for (size_t i = 0; i < cut.size(); ++i) changed += cut[i] != in[i];
    CHECK(changed <= 9);
    CHECK(changed >= 3);
  }
  CHECK(shifts.size() == 9);
}

TEST_CASE("rotate turns about the centre, within its angle, evenly both ways") {
  // A bright dot right of the centre moves up or down on its circle.
  const Extent extent{1, 21, 21};
  Bytes in(441, 0);
  for (int y = 9; y <= 11; ++y)
    for (int x = 17; x <= 19; ++x) in[y * 21 + x] = 240;
  int up = 0;
  for (int position = 0; position < 400; ++position) {
    const Bytes out = apply({"rotate 30"}, extent, in, 0, position);
    double sum = 0, row = 0, column = 0;
    for (int i = 0; i < 441; ++i) {
      sum += out[i];
      row += out[i] * (i / 21 - 10.0);
      column += out[i] * (i % 21 - 10.0);
    }
    CHECK(std::abs(std::hypot(row / sum, column / sum) - 8.0) < 0.3);
    CHECK(std::abs(std::atan2(row, column)) < 31 * 3.1416 / 180);
    up += row < 0;
  }
  CHECK(up > 150);
  CHECK(up < 250);
}

TEST_CASE("augmentations depend on seed, epoch and position alone, and on their place in the list") {
  const Extent extent{3, 8, 8};
  const Bytes in = ramp(extent);
  const std::vector<std::string> list = {"pad-crop 3", "flip", "random-shift 2"};
  const Bytes once = apply(list, extent, in, 2, 17);
  CHECK(apply(list, extent, in, 2, 17) == once);
  int same = 0;
  for (int i = 0; i < 50; ++i) {
    same += apply(list, extent, in, 2, 100 + i) == once;
    same += apply(list, extent, in, 100 + i, 17) == once;
    same += apply(list, extent, in, 2, 17, 0, 100 + i) == once;
  }
  CHECK(same < 5);
  // Two of a kind draw different numbers: seven outcomes an axis (there and back loses an edge), not three.
  std::set<Bytes> twice;
  for (int position = 0; position < 2000; ++position)
    twice.insert(apply({"random-shift 1", "random-shift 1"}, extent, in, 0, position));
  CHECK(twice.size() == 49);
}

TEST_CASE("wrong augmentations name the nearest, or what is wrong with the parameter") {
  CHECK_THROWS_WITH_AS(parse_augmentation("pad-corp 2"), doctest::Contains("did you mean \"pad-crop\"?"),
                       InputError);
  CHECK_THROWS_WITH_AS(parse_augmentation("Flip"), doctest::Contains("did you mean \"flip\"?"), InputError);
  CHECK_THROWS_WITH_AS(parse_augmentation(""), doctest::Contains("is unknown"), InputError);
  CHECK_THROWS_WITH_AS(parse_augmentation("pad-crop"), doctest::Contains("PIXELS is missing"), InputError);
  CHECK_THROWS_WITH_AS(parse_augmentation("pad-crop two"), doctest::Contains("not \"two\""), InputError);
  CHECK_THROWS_WITH_AS(parse_augmentation("pad-crop 1.5"), doctest::Contains("whole number"), InputError);
  CHECK_THROWS_WITH_AS(parse_augmentation("pad-crop 2 zeros"), doctest::Contains("\"zeros\" is too much"),
                       InputError);
  CHECK_THROWS_WITH_AS(parse_augmentation("rotate nan"), doctest::Contains("from 0 to 180"), InputError);
  CHECK_THROWS_WITH_AS(parse_augmentation("flip 1"), doctest::Contains("write it as flip"), InputError);
  const std::vector<std::string> list = {"pad-crop 8"};
  CHECK_THROWS_WITH_AS(Augmenter(list).check({1, 8, 9}), doctest::Contains("too small"), InputError);
  Augmenter(list).check({1, 9, 9});
}

TEST_CASE("random-resized-crop takes parts of even area and log-even proportions, at any place") {
  const Augmenter augmenter(std::vector<std::string>{"random-resized-crop 32 scale=0.1..0.5"});
  CHECK(augmenter.frames());
  CHECK(augmenter.framed({3, 300, 400}).bytes() == 3 * 32 * 32);
  double area = 0, above = 0, wide = 0, left = 0;
  constexpr int count = 4000;
  for (int position = 0; position < count; ++position) {
    const Frame frame = augmenter.frame(300, 400, {1, 0, position, 0});
    CHECK(frame.height == 32);
    CHECK(frame.keep == Box{0, 0, 32, 32});
    const Box& part = frame.part;
    REQUIRE(
        (part.top >= 0 && part.left >= 0 && part.top + part.height <= 300 && part.left + part.width <= 400));
    const double share = part.height * part.width / 120000.0, ratio = double(part.width) / part.height;
    CHECK(share > 0.098);
    CHECK(share < 0.503);
    CHECK(ratio > 0.74);
    CHECK(ratio < 1.36);
    area += share;
    above += share > 0.3;
    wide += ratio > 1;
    left += part.left < (400 - part.width) / 2.0;
  }
  CHECK(area / count == doctest::Approx(0.3).epsilon(0.02));
  for (const double half : {above, wide, left}) CHECK(half / count == doctest::Approx(0.5).epsilon(0.08));
}

TEST_CASE("every place of a part is drawn, the last row and column as often as the first") {
  // A quarter of 12 × 8 pixels that is as wide as high: 5 × 5, at 8 · 4 places.
  const Augmenter augmenter(std::vector<std::string>{"random-resized-crop 4 scale=0.25..0.25 ratio=1..1"});
  constexpr int places = 8 * 4, rounds = 200 * places;
  std::vector<int> times(places);
  for (int position = 0; position < rounds; ++position) {
    const Box part = augmenter.frame(12, 8, {1, 0, position, 0}).part;
    REQUIRE((part.height == 5 && part.width == 5 && part.top < 8 && part.left < 4));
    ++times[static_cast<size_t>(part.top * 4 + part.left)];
  }
  for (const int often : times) {  // within five deviations
    CHECK(often > 200 - 5 * 15);
    CHECK(often < 200 + 5 * 15);
  }
}

TEST_CASE("random-resized-crop falls back to the middle where no part fits") {
  const Augmenter augmenter(std::vector<std::string>{"random-resized-crop 8 scale=1..1"});
  // Ten times too wide for whole areas of these proportions.
  CHECK(augmenter.frame(30, 300, {}).part == Box{0, 130, 30, 40});
  CHECK(augmenter.frame(300, 30, {}).part == Box{130, 0, 40, 30});
  CHECK(augmenter.frame(1, 1, {}).part == Box{0, 0, 1, 1});
}

TEST_CASE("random-resized-crop behind other augmentations cuts and resizes what they leave") {
  const Extent extent{3, 20, 30};
  const Bytes in = ramp(extent);
  const std::vector<std::string> first = {"random-resized-crop 7"},
                                 second = {"rotate 0", "random-resized-crop 7", "flip"};
  CHECK(Augmenter(second).result(extent).bytes() == 3 * 49);
  for (int position = 0; position < 20; ++position) {
    Bytes out(3 * 49), scratch;
    Augmenter(second).apply(extent, in.data(), out.data(), {1, 0, position, 0}, scratch);
    // Every value of the result lies within those of its plane.
    for (int c = 0; c < 3; ++c) {
      const auto [low, high] = std::minmax_element(in.begin() + 600 * c, in.begin() + 600 * (c + 1));
      for (int i = 49 * c; i < 49 * (c + 1); ++i) CHECK((out[i] >= *low && out[i] <= *high));
    }
    Bytes again(3 * 49);
    Augmenter(second).apply(extent, in.data(), again.data(), {1, 0, position, 0}, scratch);
    CHECK(again == out);
  }
}

TEST_CASE("options by name may stand in any order, and are checked") {
  parse_augmentation("random-resized-crop 32 ratio=0.5..2 scale=0.1..1");
  for (const auto& [text, why] : {std::pair{"random-resized-crop", "SIZE is missing"},
                                  {"random-resized-crop 32 scale=2", "two numbers with .. between them"},
                                  {"random-resized-crop 32 scale=", "scale is missing"},
                                  {"random-resized-crop 32 scale=0.5..0.1", "must not begin above its end"},
                                  {"random-resized-crop 32 scale=0.5..1.5", "from 1e-06 to 1"},
                                  {"random-resized-crop 32 size=3", "there is no size; write it as"}})
    CHECK_THROWS_WITH_AS(parse_augmentation(text), doctest::Contains(why), InputError);
}

TEST_CASE("augmentations that share a pass give what each one for itself gives") {
  const Extent extent{3, 21, 37};
  Bytes in(extent.bytes());
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<uint8_t>(i * i / 7 + i);
  const std::vector<std::vector<std::string>> lists = {
      {"pad-crop 4", "flip"},
      {"flip", "pad-crop 4 zero"},
      {"pad-crop 3 zero", "flip", "solarize 100", "posterize 4"},
      {"solarize 90", "random-shift 5", "flip", "flip"},
      {"posterize 3", "pad-crop 2", "solarize 99 p=1", "equalize", "flip", "alternating-flip", "solarize 30"},
      {"flip", "colour-jitter brightness=0.5 contrast=0.5 saturation=0.5 hue=0.3", "posterize 5",
       "pad-crop 1"},
      {"flip", "random-resized-crop 19", "flip", "pad-crop 9 zero", "rotate 20"},
      {"flip"},
      {"solarize 10 p=0"}};
  for (const auto& list : lists)
    for (int64_t position = 0; position < 60; ++position) {
      Bytes wanted = in;
      Extent now = extent;
      for (size_t i = 0; i < list.size(); ++i) {
        const auto one = parse_augmentation(list[i]);
        const Extent next = one->result(now);
        Bytes out(next.bytes());
        Draw draw{RandomStream(5, uint64_t{i + 1} << 32 | 2, static_cast<uint64_t>(position)), 5, 2,
                  position};
        one->apply(now, wanted.data(), out.data(), draw);
        wanted = out;
        now = next;
      }
      Bytes found(wanted.size(), 99), scratch;
      Augmenter(list).apply(extent, in.data(), found.data(), {5, 2, position, position}, scratch);
      REQUIRE(found == wanted);
    }
}

TEST_CASE("augmentations are listed by place, and say what they can be told") {
  std::vector<std::string> usages = augmentation_usages();
  std::erase_if(usages, [](const std::string& usage) { return usage.starts_with("test-"); });
  CHECK(usages ==
        std::vector<std::string>{"pad-crop PIXELS [zero]",
                                 "flip",
                                 "alternating-flip",
                                 "random-shift PIXELS",
                                 "rotate DEGREES",
                                 "cutout PIXELS",
                                 "random-resized-crop SIZE [scale=0.08..1] [ratio=0.75..1.333]",
                                 "affine DEGREES [translate=0] [scale=1..1] [shear=0] [fill=0]",
                                 "perspective DISTORTION [p=0.5] [fill=0]",
                                 "colour-jitter [brightness=0] [contrast=0] [saturation=0] [hue=0] [p=1]",
                                 "grey [p=0.1]",
                                 "blur SIZE [sigma=0.1..2] [p=1]",
                                 "solarize THRESHOLD [p=0.5]",
                                 "posterize BITS [p=0.5]",
                                 "equalize [p=0.5]",
                                 "autocontrast [p=0.5]",
                                 "erasing [p=0.5] [scale=0.02..0.33] [ratio=0.3..3.3]",
                                 "noise DEVIATION [p=1]",
                                 "randaugment [COUNT STRENGTH]",
                                 "trivialaugment"});
  CHECK_THROWS_WITH_AS(parse_augmentation("randaugment 2"), doctest::Contains("STRENGTH is missing"),
                       InputError);
  CHECK_THROWS_WITH_AS(parse_augmentation("blur 4"), doctest::Contains("SIZE must be odd"), InputError);
  CHECK_THROWS_WITH_AS(parse_augmentation("grey p=0.5 p=0.1"), doctest::Contains("p is given twice"),
                       InputError);
}

TEST_CASE("a program's own augmentation is used like any") {
  register_augmentation({.name = "test-shade",
                         .doc = "darker",
                         .settings = {{"BY", "so much", int64_t{1}, 1, 255}},
                         .make = [](const Settings& s) -> std::unique_ptr<Augmentation> {
                           class Shade final : public Augmentation {
                            public:
                             explicit Shade(int64_t by) : by_(by) {}
                             void apply(const Extent& extent, const uint8_t* in, uint8_t* out,
                                        Draw&) const override {
                               for (size_t i = 0; i < extent.bytes(); ++i)
                                 out[i] = static_cast<uint8_t>(std::max<int64_t>(in[i] - by_, 0));
                             }

                            private:
                             int64_t by_;
                           };
                           return std::make_unique<Shade>(s.integer("BY"));
                         }});
  CHECK(apply({"test-shade 3"}, {1, 1, 4}, {0, 2, 5, 9}, 0, 0) == Bytes{0, 0, 2, 6});
  CHECK_THROWS_WITH_AS(parse_augmentation("test-shade 300"), doctest::Contains("write it as test-shade BY"),
                       InputError);
  CHECK_THROWS_WITH_AS(register_augmentation({.name = "flip", .make = augmentations().at("flip").make}),
                       "there is an augmentation 'flip' already", InputError);
}
