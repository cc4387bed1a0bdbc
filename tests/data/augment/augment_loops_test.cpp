#include <array>
#include <doctest/doctest.h>
#include <random>
#include <string>
#include <vector>

#include "backend/cpu/kernels/vectors.h"
#include "data/augment/colour_loops.h"
#include "data/augment/warp_loops.h"

using namespace millrace;
using namespace millrace::data;

namespace {

using Bytes = std::vector<uint8_t>;

std::vector<std::pair<std::string, const ColourLoops*>> kinds() {
  std::vector<std::pair<std::string, const ColourLoops*>> list;
  if (cpu::has_avx2()) list.emplace_back("AVX2", &colour_loops_avx2());
  if (cpu::has_avx512()) list.emplace_back("AVX-512", &colour_loops_avx512());
  return list;
}

struct Planes {
  std::array<Bytes, 3> of;
  std::array<uint8_t*, 3> at() { return {of[0].data(), of[1].data(), of[2].data()}; }
  std::array<const uint8_t*, 3> from() const { return {of[0].data(), of[1].data(), of[2].data()}; }
  bool operator==(const Planes&) const = default;
};

Bytes noise(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  Bytes bytes(count);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return bytes;
}

/// All greens and blues with so much red.
Planes colours(int red) {
  Planes planes;
  for (Bytes& plane : planes.of) plane.resize(65536);
  for (int i = 0; i < 65536; ++i) {
    planes.of[0][i] = static_cast<uint8_t>(red);
    planes.of[1][i] = static_cast<uint8_t>(i >> 8);
    planes.of[2][i] = static_cast<uint8_t>(i);
  }
  return planes;
}

}  // namespace

TEST_CASE("colour changes give the same bytes on any CPU: every colour there is") {
  const ColourLoops& plain = colour_loops_baseline();
  for (const auto& [name, loops] : kinds()) {
    CAPTURE(name);
    for (int red = 0; red < 256; ++red) {
      CAPTURE(red);
      const Planes all = colours(red);
      // Turned by another angle each, so that every hue meets every saturation and value.
      Planes wanted = all, found = all;
      const int shift = red * 37 & 255;
      plain.turn_hue(wanted.at().data(), 65536, shift);
      loops->turn_hue(found.at().data(), 65536, shift);
      REQUIRE(found == wanted);
      wanted = found = all;
      const float factor = static_cast<float>(red) * 0.011F;
      plain.saturate(wanted.at().data(), 65536, factor);
      loops->saturate(found.at().data(), 65536, factor);
      REQUIRE(found == wanted);
      REQUIRE(plain.luma_sum(all.from().data(), 65536) == loops->luma_sum(all.from().data(), 65536));
    }
  }
}

TEST_CASE("colour changes give the same bytes on any CPU: any number of them, and nothing beyond") {
  const ColourLoops& plain = colour_loops_baseline();
  const Bytes table = noise(256, 9);
  for (const auto& [name, loops] : kinds()) {
    CAPTURE(name);
    for (int64_t count = 1; count < 150; ++count) {
      CAPTURE(count);
      const Planes in{
          {noise(460, 1), noise(460, 2), noise(460, 3)}};  // three rows of 150, and what is beside them
      Planes wanted = in, found = in;
      plain.saturate(wanted.at().data(), count, 1.7F);
      loops->saturate(found.at().data(), count, 1.7F);
      plain.turn_hue(wanted.at().data(), count, 99);
      loops->turn_hue(found.at().data(), count, 99);
      plain.look_up(table.data(), wanted.of[0].data(), count, wanted.of[0].data());
      loops->look_up(table.data(), found.of[0].data(), count, found.of[0].data());
      plain.sharpen(in.of[1].data() + 151, 150, count, -0.4F, wanted.of[1].data());
      loops->sharpen(in.of[1].data() + 151, 150, count, -0.4F, found.of[1].data());
      REQUIRE(found == wanted);
      CHECK(plain.luma_sum(in.from().data(), count) == loops->luma_sum(in.from().data(), count));
      uint8_t extremes[4];
      plain.extremes(in.of[0].data(), count, &extremes[0], &extremes[1]);
      loops->extremes(in.of[0].data(), count, &extremes[2], &extremes[3]);
      CHECK(extremes[0] == extremes[2]);
      CHECK(extremes[1] == extremes[3]);
    }
    // More than fits into 32 bits.
    const Bytes white(40'000'000, 255);
    const uint8_t* const rgb[3] = {white.data(), white.data(), white.data()};
    CHECK(loops->luma_sum(rgb, 40'000'000) == 40'000'000ULL * 255);
  }
}

TEST_CASE("turned and warped pictures have the same bytes on any CPU") {
  std::vector<const WarpLoops*> list;
  if (cpu::has_avx2()) list.push_back(&warp_loops_avx2());
  if (cpu::has_avx512()) list.push_back(&warp_loops_avx512());
  std::mt19937 random(1);
  const auto uniform = [&] { return static_cast<double>(random()) / 4294967296.0 * 2 - 1; };
  for (const WarpLoops* loops : list)
    for (int turn = 0; turn < 200; ++turn) {
      CAPTURE(turn);
      const int height = 1 + static_cast<int>(random() % 40), width = 1 + static_cast<int>(random() % 150);
      const Bytes in = noise(static_cast<size_t>(height) * width * 3, 1 + turn);
      Bytes wanted(in.size()), found(in.size());
      // A few with a horizon in the picture, where it is divided by almost nothing.
      const double far = turn % 4 == 0 ? 0.05 : turn % 4 == 1 ? 0.001 : 0;
      const double from[8] = {1 + uniform(), uniform(),     9 * uniform(),   uniform(),
                              1 + uniform(), 9 * uniform(), far * uniform(), far * uniform()};
      warp_loops_baseline().warp(in.data(), 3, height, width, from, 77, wanted.data());
      loops->warp(in.data(), 3, height, width, from, 77, found.data());
      REQUIRE(found == wanted);
      const auto cosine = static_cast<int64_t>(65536 * uniform()),
                 sine = static_cast<int64_t>(65536 * uniform());
      warp_loops_baseline().turn(in.data(), 3, height, width, cosine, sine, wanted.data());
      loops->turn(in.data(), 3, height, width, cosine, sine, found.data());
      REQUIRE(found == wanted);
    }
}
