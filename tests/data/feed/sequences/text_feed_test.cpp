#include "data/feed/sequences/text_feed.h"

#include <algorithm>
#include <cstring>
#include <doctest/doctest.h>

#include <millrace/error.h>

#include "base/philox.h"
#include "data/encode/memory_texts.h"

using namespace millrace;
using namespace millrace::data;
using namespace millrace::testing;

namespace {

template <typename T>
std::vector<T> values(const Feed& feed, const FeedBatch& batch, std::string_view name) {
  for (size_t i = 0; i < feed.fields().size(); ++i)
    if (feed.fields()[i].name == name) {
      std::vector<T> result(batch.arrays[i].size() / sizeof(T));
      std::memcpy(result.data(), batch.arrays[i].data(), batch.arrays[i].size());
      return result;
    }
  return {};
}

std::shared_ptr<const Texts> shared(Texts texts) { return std::make_shared<const Texts>(std::move(texts)); }

TextFeedOptions options_of(Rows rows, int64_t length, int64_t batch) {
  TextFeedOptions options;
  options.rows = rows;
  options.plan.length = length;
  options.plan.batch = batch;
  options.vocabulary = 1000;
  options.mask = 1000;
  return options;
}

/// All of a batch's bytes.
std::vector<std::byte> content(const FeedBatch& batch) {
  std::vector<std::byte> all;
  for (const auto& array : batch.arrays) all.insert(all.end(), array.begin(), array.end());
  return all;
}

}  // namespace

TEST_CASE("of windows each token's target is the next one") {
  const auto feed = text_feed(shared(make_texts({200})), options_of(Rows::windows, 16, 4));
  CHECK(feed->fields().size() == 2);
  CHECK(feed->inputs() == 1);
  CHECK(feed->bytes_per_target() == 3);
  for (int i = 0; i < 6; ++i) {
    const FeedBatch& batch = feed->next();
    const auto tokens = values<int64_t>(*feed, batch, "tokens"),
               targets = values<int64_t>(*feed, batch, "targets");
    REQUIRE(tokens.size() == 64);
    for (size_t k = 0; k < 64; ++k) CHECK(targets[k] == tokens[k] + 1);
    CHECK(std::equal(targets.begin(), targets.end(), batch.targets.begin(), batch.targets.end()));
    CHECK(batch.length == 16);
  }
}

TEST_CASE("packed rows say where texts begin, and what counts sums to all places") {
  const auto feed = text_feed(shared(make_texts({5, 4, 7, 30, 2, 3, 6})), options_of(Rows::packed, 12, 2));
  CHECK(feed->inputs() == 3);
  for (int i = 0; i < 3; ++i) {
    const FeedBatch& batch = feed->next();
    const auto tokens = values<int64_t>(*feed, batch, "tokens"),
               segments = values<int64_t>(*feed, batch, "segments"),
               positions = values<int64_t>(*feed, batch, "positions"),
               targets = values<int64_t>(*feed, batch, "targets");
    const auto counted = values<float>(*feed, batch, "counted");
    float sum = 0;
    for (size_t k = 0; k < 24; ++k) {
      sum += counted[k];
      CHECK((counted[k] > 0) == (segments[k] > 0));
      CHECK((batch.targets[k] >= 0) == (segments[k] > 0));
      if (segments[k] == 0) continue;
      CHECK(targets[k] == tokens[k] + 1);
      const bool goes_on = k % 12 > 0 && segments[k] == segments[k - 1];
      CHECK(positions[k] == (goes_on ? positions[k - 1] + 1 : 0));
      if (goes_on) CHECK(tokens[k] == tokens[k - 1] + 1);
    }
    CHECK(sum == doctest::Approx(24));
  }
}

TEST_CASE("texts with classes are padded to their bucket; the rest of a partial batch counts nothing") {
  TextFeedOptions options = options_of(Rows::padded, 16, 4);
  options.plan.buckets = {4, 16};
  options.plan.order = "sequential";
  options.plan.whole_batches = false;
  const auto feed = text_feed(shared(make_texts({3, 20, 1, 0, 2, 9}, 1000, 2)), options);
  CHECK(feed->lengths() == std::vector<int64_t>{4, 16});
  CHECK(feed->batches_per_epoch() == 2);
  const FeedBatch& first = feed->next();
  CHECK(first.length == 4);
  CHECK(values<int64_t>(*feed, first, "segments") ==
        std::vector<int64_t>{0, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 0});
  CHECK(std::vector<int64_t>(first.targets.begin(), first.targets.end()) == std::vector<int64_t>{1, 0, 0, 0});
  CHECK(feed->rows()[0] == "text 3 from its token 0 on, 0 tokens: 1");
  const FeedBatch& second = feed->next();
  CHECK(second.length == 16);
  CHECK(second.valid == 2);
  CHECK(std::vector<int64_t>(second.targets.begin(), second.targets.end()) ==
        std::vector<int64_t>{1, 1, -1, -1});
  CHECK(values<int64_t>(*feed, second, "labels") == std::vector<int64_t>{1, 1, 0, 0});
}

TEST_CASE("a cursor put back gives the same batches, whatever was read before") {
  for (const Rows rows : {Rows::windows, Rows::packed, Rows::padded}) {
    const auto texts =
        shared(make_texts({40, 5, 17, 9, 30, 22, 8, 13, 40, 3, 12, 31}, 1000, rows == Rows::padded ? 3 : 0));
    TextFeedOptions options = options_of(rows, 16, 2);
    if (rows != Rows::padded) options.spans = SpanOptions{0.3, 2};
    const auto one = text_feed(texts, options), other = text_feed(texts, options);
    std::vector<Cursor> cursors;
    std::vector<std::vector<std::byte>> batches;
    for (int i = 0; i < 12; ++i) {
      cursors.push_back(one->cursor());
      batches.push_back(content(one->next()));
    }
    CHECK(cursors.back().epoch >= 1);
    for (size_t i = 12; i-- > 0;) {
      other->seek(cursors[i]);
      CHECK(content(other->next()) == batches[i]);
    }
    CHECK(one->digest() == other->digest());
    CHECK_THROWS_AS(other->seek({1, 0, 100000}), InputError);
    CHECK_THROWS_AS(other->seek({1, 0, 1}), InputError);
  }
}

TEST_CASE("masked tokens are the targets, and only those") {
  TextFeedOptions options = options_of(Rows::windows, 200, 2);
  options.spans = SpanOptions{0.2, 4};
  const auto feed = text_feed(shared(make_texts({2000}, 1000)), options);
  int64_t masked = 0, kept = 0, replaced = 0, places = 0;
  for (int i = 0; i < 50; ++i) {
    const FeedBatch& batch = feed->next();
    const auto tokens = values<int64_t>(*feed, batch, "tokens");
    for (size_t k = 0; k < tokens.size(); ++k) {
      ++places;
      if (batch.targets[k] < 0) continue;
      ++(tokens[k] == 1000 ? masked : tokens[k] == batch.targets[k] ? kept : replaced);
    }
  }
  const auto all = static_cast<double>(masked + kept + replaced);
  CHECK(all / static_cast<double>(places) == doctest::Approx(0.2).epsilon(0.001));
  CHECK(static_cast<double>(masked) / all == doctest::Approx(0.8).epsilon(0.05));
  CHECK(static_cast<double>(kept) / all == doctest::Approx(0.1).epsilon(0.3));
}

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
  CHECK(random_spans(2, options, 1, 0, 0) == std::vector<uint8_t>{0, 1});
  CHECK(random_spans(1, options, 1, 0, 0) == std::vector<uint8_t>{0});
  CHECK(random_spans(0, options, 1, 0, 0).empty());
  for (const char* text : {"", "0.15", "0 3", "1 3", "0.2 0.5", "0.2 3 4", "a b", "nan 3"})
    CHECK_THROWS_WITH_AS(SpanOptions::parse(text), doctest::Contains("\"0.15 3\""), InputError);
}
