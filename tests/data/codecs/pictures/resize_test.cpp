#include "data/codecs/pictures/resize.h"

#include <algorithm>
#include <doctest/doctest.h>

#include "backend/cpu/kernels/vectors.h"
#include "data/codecs/pictures/picture.h"
#include "support/pictures.h"

using namespace millrace;
using namespace millrace::data;

namespace {

std::vector<uint8_t> noise(size_t size, uint64_t seed) {
  RandomStream random(seed, 0);
  std::vector<uint8_t> bytes(size);
  // Extremes are frequent, so that sums reach both ends.
  for (uint8_t& byte : bytes) byte = random.below(3) ? static_cast<uint8_t>(random.next()) : 255;
  return bytes;
}

}  // namespace

TEST_CASE("the loops of all CPUs give the same bytes") {
  std::vector<const cpu::ResizeLoops*> others;
  if (cpu::has_avx2()) others.push_back(&cpu::resize_loops_avx2());
  if (cpu::has_avx512()) others.push_back(&cpu::resize_loops_avx512());
  if (others.empty()) MESSAGE("skipped: this CPU has neither AVX2 nor AVX-512");
  const cpu::ResizeLoops& plain = cpu::resize_loops_baseline();
  for (const cpu::ResizeLoops* loops : others)
    for (const auto& [in, out] :
         {std::pair{1, 1}, {5, 40}, {224, 224}, {500, 224}, {301, 33}, {900, 2}, {3, 700}}) {
      cpu::ResizeTable table;
      table.make(in, 0.25 * (in > 3), in, out, 0, out);
      for (const int channels : {1, 3}) {
        const auto row = noise(static_cast<size_t>(in * channels) + Resampler::slack, in);
        std::vector<uint8_t> a(static_cast<size_t>(out * channels) + Resampler::slack), b = a;
        for (const auto& [to, with] : {std::pair{&a, &plain}, {&b, loops}}) {
          with->across(row.data(), channels, table.first.data(), table.count.data(), table.weights.data(),
                       table.width, out, to->data());
          to->resize(static_cast<size_t>(out * channels));
        }
        CHECK(a == b);
      }
      const int taps = std::min(table.width, 9), bytes = out;
      const auto rows = noise(static_cast<size_t>(bytes * taps) + Resampler::slack, 5);
      std::vector<uint8_t> a(static_cast<size_t>(bytes) + Resampler::slack), b = a;
      cpu::ResizeTable few;
      few.make(taps, 0, taps, 1, 0, 1);
      plain.down(rows.data(), bytes, few.weights.data(), few.count[0], bytes, a.data());
      loops->down(rows.data(), bytes, few.weights.data(), few.count[0], bytes, b.data());
      CHECK(std::equal(a.begin(), a.begin() + bytes, b.begin()));

      const auto pixels = noise(static_cast<size_t>(3 * in), 6);
      std::vector<uint8_t> apart(static_cast<size_t>(3 * in)), apart_too = apart, turned(pixels.size()),
                                                               turned_too = turned;
      plain.apart(pixels.data(), in, apart.data(), apart.data() + in, apart.data() + 2 * in);
      loops->apart(pixels.data(), in, apart_too.data(), apart_too.data() + in, apart_too.data() + 2 * in);
      CHECK(apart == apart_too);
      std::vector<uint8_t> together(pixels.size()), together_too = together;
      plain.together(apart.data(), apart.data() + in, apart.data() + 2 * in, in, together.data());
      loops->together(apart.data(), apart.data() + in, apart.data() + 2 * in, in, together_too.data());
      CHECK(together == pixels);
      CHECK(together_too == pixels);
      plain.turned(pixels.data(), 3 * in, turned.data());
      loops->turned(pixels.data(), 3 * in, turned_too.data());
      CHECK(turned == turned_too);
    }
}

TEST_CASE("weights add up to one, and a row of one value keeps it") {
  for (const auto& [in, out] : {std::pair{500, 224}, {4000, 3}, {7, 100}, {65535, 1}}) {
    Picture picture{1, in, 1, std::vector<uint8_t>(static_cast<size_t>(in), 255)};
    const Picture result = resize(picture, 1, out);
    CHECK(std::count(result.pixels.begin(), result.pixels.end(), 255) == out);
  }
}
