#include "data/feed/sequences/spans.h"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <vector>

#include <millrace/error.h>

using namespace millrace;
using namespace millrace::data;

TEST_CASE("spans have the share and the mean length asked for, at any place alike") {
  const SpanOptions options{0.15, 3};
  std::vector<int> hits(100);
  for (int64_t position = 0; position < 4000; ++position) {
    const auto mask = random_spans(100, options, 1, 0, position);
    int64_t count = 0, spans = 0;
    for (size_t i = 0; i < 100; ++i) {
      hits[i] += mask[i];
      count += mask[i];
      spans += mask[i] && (i == 0 || !mask[i - 1]);
    }
    CHECK(count == 15);
    CHECK(spans == 5);
    CHECK(!mask[0]);
  }
  // Away from the beginning, which is never masked, all places are as likely.
  for (size_t i = 20; i < 80; ++i) CHECK(hits[i] == doctest::Approx(4000 * 0.15).epsilon(0.2));
  CHECK(random_spans(100, options, 1, 0, 5) == random_spans(100, options, 1, 0, 5));
  CHECK(random_spans(100, options, 1, 0, 5) != random_spans(100, options, 1, 1, 5));
  CHECK(random_spans(100, options, 1, 0, 5) != random_spans(100, options, 2, 0, 5));
  // Between two spans there is a token at least.
  for (const int64_t length : {3, 10, 77}) {
    const auto most = random_spans(length, {0.9, 1}, 1, 0, 0);
    CHECK(std::count(most.begin(), most.end(), 0) ==
          std::max<int64_t>(1, length - std::llround(0.9 * length)));
    CHECK(!most[0]);
  }
  CHECK(random_spans(2, options, 1, 0, 0) == std::vector<uint8_t>{0, 1});
  CHECK(random_spans(1, options, 1, 0, 0) == std::vector<uint8_t>{0});
  CHECK(random_spans(0, options, 1, 0, 0).empty());
  for (const char* text : {"", "0.15", "0 3", "1 3", "0.2 0.5", "0.2 3 4", "a b", "nan 3"})
    CHECK_THROWS_WITH_AS(SpanOptions::parse(text), doctest::Contains("\"0.15 3\""), InputError);
}
