#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <map>
#include <set>
#include <string>

#include "data/augment/augment.h"
#include "data/augment/automatic.h"
#include "data/augment/blur.h"
#include "data/augment/colours.h"
#include "data/augment/warp.h"

using namespace millrace;
using namespace millrace::data;

namespace {

struct StoredChange {
  std::string operation, picture;
  std::vector<double> numbers;
  std::string planes;  // in hexadecimal
};

const std::vector<StoredChange>& stored() {
  static const std::vector<StoredChange> list = {
#include "data/augment/augment_values.inc"
  };
  return list;
}

using Bytes = std::vector<uint8_t>;
const Extent extent{3, 11, 13}, many{3, 24, 24};

Extent extent_of(const Bytes& planes) { return planes.size() == many.bytes() ? many : extent; }

Bytes bytes_of(const std::string& hex) {
  Bytes bytes;
  for (size_t i = 0; i < hex.size(); i += 2)
    bytes.push_back(static_cast<uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

const Bytes& picture(const std::string& name) {
  static std::map<std::string, Bytes> pictures;
  for (const StoredChange& one : stored())
    if (one.operation == "picture") pictures.try_emplace(one.picture, bytes_of(one.planes));
  return pictures.at(name);
}

Bytes changed(const StoredChange& wanted) {
  const Bytes& in = picture(wanted.picture);
  Bytes out = in;
  const auto& n = wanted.numbers;
  const std::string& what = wanted.operation;
  if (what == "brightness") look_up(brightness_table(n[0]), out.data(), extent.bytes());
  if (what == "contrast") look_up(contrast_table(extent, in.data(), n[0]), out.data(), extent.bytes());
  if (what == "saturation") saturation(extent, out.data(), n[0]);
  if (what == "sharpness") sharpness(extent, out.data(), n[0]);
  if (what == "hue") hue(extent, out.data(), n[0]);
  if (what == "solarize") look_up(solarize_table(n[0]), out.data(), extent.bytes());
  if (what == "posterize") look_up(posterize_table(static_cast<int>(n[0])), out.data(), extent.bytes());
  if (what == "equalize") equalize(extent_of(in), out.data());
  if (what == "autocontrast") autocontrast(extent, out.data());
  if (what == "blur") gaussian_blur(extent, out.data(), static_cast<int>(n[0]), n[1]);
  if (what == "affine")
    warp(extent, in.data(), out.data(), affine_projection({6.5, 5.5}, n[0], {n[1], n[2]}, n[3], {n[4], n[5]}),
         0);
  if (what == "perspective")
    warp(extent, in.data(), out.data(),
         perspective_projection(11, 13, {{{n[0], n[1]}, {n[2], n[3]}, {n[4], n[5]}, {n[6], n[7]}}}), 0);
  return out;
}

Bytes apply(const std::vector<std::string>& list, const Bytes& in, int64_t position) {
  Bytes out(in.size(), 99), scratch;
  Augmenter(list).apply(extent_of(in), in.data(), out.data(), {1, 0, position, 0}, scratch);
  return out;
}

}  // namespace

TEST_CASE("changes of colours and places have the values of Pillow and of torchvision's definitions") {
  std::set<std::string> seen;
  for (const StoredChange& wanted : stored()) {
    CAPTURE(wanted.operation);
    CAPTURE(wanted.picture);
    CAPTURE(wanted.numbers.empty() ? 0.0 : wanted.numbers[0]);
    const Bytes expected = bytes_of(wanted.planes), found = changed(wanted);
    REQUIRE(found.size() == expected.size());
    // Places are sums of products, whose last bits may differ: a value on the edge of two may become the
    // other.
    const bool place =
        wanted.operation == "affine" || wanted.operation == "perspective" || wanted.operation == "blur";
    int most = 0, different = 0;
    for (size_t i = 0; i < found.size(); ++i) {
      most = std::max(most, std::abs(found[i] - expected[i]));
      different += found[i] != expected[i];
    }
    // A pixel of a projection that lies on the very edge may be in or out.
    if (wanted.operation != "perspective") CHECK(most <= (place ? 1 : 0));
    CHECK(different <= (place ? 4 : 0));
    seen.insert(wanted.operation);
  }
  CHECK(seen.size() == 13);
}

TEST_CASE("changes that come with a probability come as often") {
  const Bytes& in = picture("many");
  for (const char* text :
       {"grey p=0.25", "solarize 128 p=0.25", "posterize 3 p=0.25", "equalize p=0.25", "autocontrast p=0.25",
        "erasing p=0.25", "noise 20 p=0.25", "perspective 0.6 p=0.25", "blur 3 p=0.25 sigma=1..2",
        "colour-jitter brightness=0.5 p=0.25"}) {
    int changes = 0;
    for (int position = 0; position < 1000; ++position) changes += apply({text}, in, position) != in;
    CHECK_MESSAGE(changes > 190, std::string(text));
    CHECK_MESSAGE(changes < 310, std::string(text));
  }
}

TEST_CASE("erasing hides one rectangle of each channel under its mean, within its area") {
  const Bytes flat(extent.bytes(), 7), &in = picture("noise");
  std::set<std::pair<int, int>> sizes;
  for (int position = 0; position < 300; ++position) {
    CHECK(apply({"erasing p=1"}, flat, position) == flat);
    const Bytes out = apply({"erasing p=1 scale=0.1..0.3"}, in, position);
    int top = 99, bottom = -1, left = 99, right = -1;
    for (int i = 0; i < 143; ++i) {
      bool differs = false;
      for (int c = 0; c < 3; ++c) differs |= out[c * 143 + i] != in[c * 143 + i];
      if (!differs) continue;
      top = std::min(top, i / 13), bottom = std::max(bottom, i / 13);
      left = std::min(left, i % 13), right = std::max(right, i % 13);
    }
    if (bottom < 0) continue;  // none of ten fitted
    for (int y = top; y <= bottom; ++y)
      for (int x = left; x <= right; ++x) CHECK(out[y * 13 + x] == out[top * 13 + left]);
    sizes.insert({bottom - top, right - left});
    CHECK((bottom - top + 1) * (right - left + 1) < 0.45 * 143);
  }
  CHECK(sizes.size() > 10);
}

TEST_CASE("erasing leaves pictures alone that no rectangle of its ratio fits into") {
  // A rectangle is no higher and no wider than what lies around it.
  for (const Extent& strip : {Extent{1, 4, 60}, Extent{1, 60, 4}}) {
    const std::string ratio = strip.height < strip.width ? "ratio=3..3.3" : "ratio=0.3..0.33";
    Bytes in(strip.bytes()), scratch;
    for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<uint8_t>(i * 37);
    for (int position = 0; position < 50; ++position) {
      Bytes out(in.size(), 99);
      Augmenter(std::vector<std::string>{"erasing p=1 scale=0.5..0.6 " + ratio})
          .apply(strip, in.data(), out.data(), {1, 0, position, 0}, scratch);
      CHECK(out == in);
    }
  }
}

TEST_CASE("noise has its deviation and no drift, and colour-jitter its reach") {
  const Bytes flat(extent.bytes(), 128);
  double sum = 0, squares = 0;
  int least = 255, most = 0;
  for (int position = 0; position < 200; ++position) {
    for (const uint8_t value : apply({"noise 10"}, flat, position)) {
      sum += value - 128.0;
      squares += (value - 128.0) * (value - 128.0);
    }
    const Bytes bright = apply({"colour-jitter brightness=0.25"}, flat, position);
    least = std::min<int>(least, bright[0]);
    most = std::max<int>(most, bright[0]);
  }
  const double count = 200.0 * static_cast<double>(extent.bytes());
  CHECK(std::abs(sum / count) < 0.2);
  CHECK(std::sqrt(squares / count) == doctest::Approx(10).epsilon(0.02));
  CHECK(least < 100);
  CHECK(least >= 96);
  CHECK(most > 156);
  CHECK(most <= 160);
}

TEST_CASE("affine stays within its reach, and nothing of it is nothing") {
  const Bytes& in = picture("smooth");
  for (int position = 0; position < 20; ++position) CHECK(apply({"affine 0"}, in, position) == in);
  // Moved by whole pixels: the filling of at most a third of each side, and all else from the picture.
  std::set<Bytes> results;
  for (int position = 0; position < 400; ++position) {
    const Bytes out = apply({"affine 0 translate=0.2 fill=9"}, in, position);
    results.insert(out);
    CHECK(std::count(out.begin(), out.begin() + 143, 9) <= 143 - 9 * 10);
  }
  // Two pixels and a bit of 11, three of 13, each way.
  CHECK(results.size() > 25);
  CHECK(results.size() <= 5 * 7);
}

TEST_CASE("noise stops at black and white") {
  const Bytes dark(extent.bytes(), 2), bright(extent.bytes(), 253);
  for (const uint8_t value : apply({"noise 10"}, dark, 3)) CHECK(value < 100);
  for (const uint8_t value : apply({"noise 10"}, bright, 3)) CHECK(value > 155);
}

namespace {

/// What the strongest of 31 steps does by the papers' lists (Cubuk et al., arXiv 1909.13719; Müller and
/// Hutter, arXiv 2103.10158), as torchvision has them.
struct PublishedRange {
  double shear, pixels, degrees, enhance;
  int bits;  // that posterize leaves
};

/// All that can come of one picture with a share of that strength.
std::set<Bytes> automatic_results(const Bytes& in, const PublishedRange& range, double share) {
  std::set<Bytes> results = {in};
  const auto place = [&](std::pair<double, double> centre, double angle, std::pair<double, double> move,
                         std::pair<double, double> shear) {
    Bytes out(in.size());
    warp(many, in.data(), out.data(), affine_projection(centre, angle, move, 1, shear), 0);
    results.insert(out);
  };
  const auto colour = [&](auto change, auto... amounts) {
    Bytes out = in;
    change(many, out.data(), amounts...);
    results.insert(out);
  };
  const auto by = [&](const Table& table) {
    Bytes out = in;
    look_up(table, out.data(), out.size());
    results.insert(out);
  };
  for (const double sign : {-1.0, 1.0}) {
    const double lean = std::atan(sign * share * range.shear) * (180 / 3.14159265358979323846),
                 move = std::trunc(sign * share * range.pixels);
    place({0, 0}, 0, {0, 0}, {lean, 0});
    place({0, 0}, 0, {0, 0}, {0, lean});
    place({0, 0}, 0, {move, 0}, {0, 0});
    place({0, 0}, 0, {0, move}, {0, 0});
    place({12, 12}, sign * share * range.degrees, {0, 0}, {0, 0});
    const double factor = 1 + sign * share * range.enhance;
    for (const auto change : {saturation, sharpness}) colour(change, factor);
    by(brightness_table(factor));
    by(contrast_table(many, in.data(), factor));
  }
  by(posterize_table(8 - static_cast<int>(std::nearbyint(share * (8 - range.bits)))));
  by(solarize_table(255 * (1 - share)));
  colour(autocontrast);
  colour(equalize);
  return results;
}

}  // namespace

TEST_CASE("the contrast of a grey picture is around the mean of its own pixels") {
  Bytes bytes = {100, 50, 255};  // a picture of two, and what lies behind it
  look_up(contrast_table({1, 1, 2}, bytes.data(), 0), bytes.data(), 2);
  CHECK(bytes == Bytes{75, 75, 255});
}

TEST_CASE("randaugment and trivialaugment have the published ranges") {
  const Bytes& in = picture("many");
  const PublishedRange rand{0.3, 150.0 / 331 * 24, 30, 0.9, 4}, trivial{0.99, 32, 135, 0.99, 2};
  for (const int strength : {30, 9}) {
    std::set<Bytes> seen;
    for (int position = 0; position < 600; ++position)
      seen.insert(apply({"randaugment 1 " + std::to_string(strength)}, in, position));
    CHECK(seen == automatic_results(in, rand, strength / 30.0));
  }
  std::set<Bytes> can, seen;
  for (int step = 0; step <= 30; ++step) can.merge(automatic_results(in, trivial, step / 30.0));
  for (int position = 0; position < 8000; ++position) seen.insert(apply({"trivialaugment"}, in, position));
  CHECK(std::includes(can.begin(), can.end(), seen.begin(), seen.end()));
  const std::set<Bytes> strongest = automatic_results(in, trivial, 1);
  CHECK(std::includes(seen.begin(), seen.end(), strongest.begin(), strongest.end()));
}

TEST_CASE("randaugment and trivialaugment use all of their operations, and depend on the sample alone") {
  const Bytes& in = picture("many");
  const AutomaticReach reach{
      .shear = 0.3, .rotate = 30, .enhance = 0.9, .translate = 3, .translate_share = 0, .posterize = 6};
  std::set<Bytes> kinds;
  Bytes other;
  for (uint32_t kind = 0; kind < automatic_kinds; ++kind) {
    Bytes out = in;
    automatic_change(reach, kind, 30, true, many, out.data(), other);
    CHECK((out == in) == (kind == 0));
    kinds.insert(out);
  }
  CHECK(kinds.size() == automatic_kinds);
  // No strength changes nothing, but for what has none.
  for (uint32_t kind = 0; kind < 11; ++kind) {
    Bytes out = in;
    automatic_change(reach, kind, 0, false, many, out.data(), other);
    CHECK_MESSAGE(out == in, kind);
  }
  for (const char* text : {"randaugment", "randaugment 1 20", "trivialaugment"}) {
    std::set<Bytes> results;
    for (int position = 0; position < 200; ++position) {
      results.insert(apply({text}, in, position));
      CHECK(apply({text}, in, position) == apply({text}, in, position));
    }
    CHECK(results.size() > 20);
  }
}
