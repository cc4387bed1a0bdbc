#include "data/augment/mix.h"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>

#include <millrace/error.h>

#include "support/labelled.h"
#include "support/pictures.h"
#include "support/temp_folder.h"

using namespace millrace;
using namespace millrace::data;

namespace {

using Planes = std::vector<uint8_t>;

Mixer mixer(const std::vector<std::string>& list) { return Mixer(list); }

/// Pictures of one value each: 0, 20, 40 …
Planes steps(const Extent& extent, int count) {
  Planes bytes;
  for (int i = 0; i < count; ++i) bytes.insert(bytes.end(), extent.bytes(), static_cast<uint8_t>(20 * i));
  return bytes;
}

}  // namespace

TEST_CASE("mixup gives each picture a share of the one before it, drawn anew for each batch") {
  const Extent extent{3, 4, 5};
  const Planes in = steps(extent, 4);
  double sum = 0, squares = 0;
  constexpr int rounds = 2000;
  for (int64_t position = 0; position < rounds; ++position) {
    Planes out = in, scratch;
    const float kept = mixer({"mixup 0.4"}).apply(extent, out.data(), 4, {1, 0, position, 0}, scratch);
    for (int i = 0; i < 4; ++i) {
      const double wanted = kept * in[i * 60] + (1 - kept) * in[(i + 3) % 4 * 60];
      CHECK(std::abs(out[i * 60] - wanted) < 0.51);
      CHECK(std::count(out.begin() + i * 60, out.begin() + (i + 1) * 60, out[i * 60]) == 60);
    }
    sum += kept;
    squares += (kept - 0.5) * (kept - 0.5);
  }
  CHECK(sum / rounds == doctest::Approx(0.5).epsilon(0.06));
  // The variance of Beta(a, a) is 1 / (4 (2a + 1)).
  CHECK(squares / rounds == doctest::Approx(1 / (4 * 1.8)).epsilon(0.06));
}

TEST_CASE("cutmix pastes one box of the one before, and the share is that of its pixels") {
  const Extent extent{2, 12, 10};
  const Planes in = steps(extent, 3);
  for (int64_t position = 0; position < 300; ++position) {
    Planes out = in, scratch;
    const float kept = mixer({"cutmix 1"}).apply(extent, out.data(), 3, {1, 2, position, 0}, scratch);
    for (int i = 0; i < 3; ++i) {
      const auto begin = out.begin() + i * 240;
      const auto own = std::count(begin, begin + 240, in[i * 240]);
      CHECK(own == std::lround(kept * 240));
      CHECK(std::count(begin, begin + 240, in[(i + 2) % 3 * 240]) == 240 - own);
    }
  }
}

TEST_CASE("wrong mixings are named, and one sample alone stays") {
  CHECK_THROWS_WITH_AS(mixer({"mixip 1"}), doctest::Contains("did you mean \"mixup\"?"), InputError);
  CHECK_THROWS_WITH_AS(mixer({"cutmix"}), doctest::Contains("ALPHA is missing"), InputError);
  CHECK_THROWS_WITH_AS(mixer({"mixup 0"}), doctest::Contains("from 0.01 to 100"), InputError);
  Planes one(12, 7), scratch;
  CHECK(mixer({"mixup 1"}).apply({3, 2, 2}, one.data(), 1, {}, scratch) == 1);
  CHECK(one == Planes(12, 7));
}
