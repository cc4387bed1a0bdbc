#include "data/feed/sequences/token_part.h"

#include <algorithm>
#include <cstring>
#include <doctest/doctest.h>
#include <map>
#include <thread>

#include <millrace/error.h>

#include "data/encode/memory_texts.h"
#include "data/feed/sequences/token_rows.h"

using namespace millrace;
using namespace millrace::data;
using namespace millrace::testing;

namespace {

using Layout = TokenOptions::Layout;
using Learn = TokenOptions::Learn;

std::shared_ptr<const Texts> texts_of(Texts texts) { return std::make_shared<const Texts>(std::move(texts)); }

TokenOptions token_options(Layout layout, Learn learn, int64_t length) {
  TokenOptions options;
  options.layout = layout;
  options.learn = learn;
  options.length = length;
  options.vocabulary = 1000;
  options.mask = 1000;
  return options;
}

PlanOptions plan_options(int64_t batch, const std::string& order = "shuffle", bool whole = true) {
  PlanOptions options;
  options.batch = batch;
  options.order = order;
  options.whole_batches = whole;
  return options;
}

/// A batch as a feed makes it.
struct TokenBatch {
  std::map<std::string, std::vector<int64_t>> arrays;
  std::vector<float> counted;
  std::vector<int64_t> samples;
  int64_t length = 0;
};

TokenBatch batch_at(const TokenPart& part, const RowPlan& rows, const Cursor& at, int64_t batch) {
  TokenBatch made;
  made.length = rows.length(at);
  const auto size = static_cast<size_t>(made.length);
  std::vector<RowPick> picks(static_cast<size_t>(std::min(batch, rows.count() - at.position)));
  rows.take(at, picks);
  // What was there before must not show.
  std::vector<std::vector<std::byte>> memory;
  for (const Field& field : part.fields())
    memory.emplace_back(size * static_cast<size_t>(batch * field.type.dtype.bytes()), std::byte{0x55});
  const auto places = [&](int64_t row) {
    std::vector<std::byte*> begins;
    for (size_t f = 0; f < memory.size(); ++f)
      begins.push_back(memory[f].data() +
                       memory[f].size() / static_cast<size_t>(batch) * static_cast<size_t>(row));
    return begins;
  };
  for (int64_t i = 0; i < batch; ++i) {
    Row row{{at.seed, at.epoch, at.position + i, -1}, made.length, {}};
    if (i >= std::ssize(picks)) {
      part.pad(row, places(i));
      continue;
    }
    const RowPick& pick = picks[static_cast<size_t>(i)];
    row.key.index = pick.pick.index;
    row.extracts = pick.extracts;
    made.samples.push_back(pick.pick.index);
    part.put(nullptr, row, nullptr, places(i));
  }
  part.finish(batch, made.length, places(0));
  for (size_t f = 0; f < memory.size(); ++f) {
    const std::string& name = part.fields()[f].name;
    if (name == "counted") {
      made.counted.resize(memory[f].size() / sizeof(float));
      std::memcpy(made.counted.data(), memory[f].data(), memory[f].size());
      continue;
    }
    auto& values = made.arrays[name];
    values.resize(memory[f].size() / sizeof(int64_t));
    std::memcpy(values.data(), memory[f].data(), memory[f].size());
  }
  return made;
}

std::vector<std::string> names_of(const TokenPart& part) {
  std::vector<std::string> names;
  for (const Field& field : part.fields()) names.push_back(field.name);
  return names;
}

}  // namespace

TEST_CASE("of windows each token's target is the next one, and those of a padded row count nothing") {
  const auto texts = texts_of(make_texts({200}));
  const TokenOptions options = token_options(Layout::windows, Learn::next, 16);
  const TokenPart part(texts, options);
  CHECK(names_of(part) == std::vector<std::string>{"tokens", "targets"});
  CHECK(part.digest() != TokenPart(texts_of(make_texts({201})), options).digest());
  const auto rows = token_rows(texts, options, plan_options(4));
  CHECK(rows->lengths() == std::vector<int64_t>{16});
  CHECK(!rows->whole_batches());
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    const TokenBatch batch = batch_at(part, *rows, {1, epoch, 4}, 4);
    for (size_t k = 0; k < 64; ++k) CHECK(batch.arrays.at("targets")[k] == batch.arrays.at("tokens")[k] + 1);
    CHECK(batch.samples == std::vector<int64_t>(4, -1));
  }
  // All in order: 199 tokens have a next one, the last window is shorter and fills no batch.
  PlanOptions whole = plan_options(4, "shuffle", false);
  whole.whole_windows = false;
  const auto test = token_rows(texts, options, whole);
  CHECK(test->count() == 13);
  const TokenBatch last = batch_at(part, *test, {1, 0, 12}, 4);
  int64_t counting = 0;
  for (const int64_t target : last.arrays.at("targets")) counting += target >= 0;
  CHECK((counting == 16 || counting == 7));  // of whole windows, and the rest
  const TokenBatch again = batch_at(part, *test, {1, 5, 12}, 4);
  CHECK(again.arrays == last.arrays);  // without whole batches each epoch is the first
}

TEST_CASE("packed rows say where texts begin, and what counts sums to all places") {
  const auto texts = texts_of(make_texts({5, 4, 7, 30, 2, 3, 6}));
  const TokenOptions options = token_options(Layout::packed, Learn::next, 12);
  const TokenPart part(texts, options);
  CHECK(names_of(part) == std::vector<std::string>{"tokens", "segments", "positions", "targets", "counted"});
  const auto rows = token_rows(texts, options, plan_options(2));
  const TokenBatch batch = batch_at(part, *rows, {1, 0, 0}, 3);  // with a padded row
  const auto& tokens = batch.arrays.at("tokens");
  const auto& segments = batch.arrays.at("segments");
  const auto& positions = batch.arrays.at("positions");
  const auto& targets = batch.arrays.at("targets");
  float sum = 0;
  for (size_t k = 0; k < 36; ++k) {
    sum += batch.counted[k];
    CHECK((batch.counted[k] > 0) == (segments[k] > 0));
    CHECK((targets[k] >= 0) == (segments[k] > 0));
    if (segments[k] == 0) {
      CHECK(tokens[k] == 0);
      CHECK(positions[k] == 0);
      continue;
    }
    CHECK(targets[k] == tokens[k] + 1);
    const bool goes_on = k % 12 > 0 && segments[k] == segments[k - 1];
    CHECK(positions[k] == (goes_on ? positions[k - 1] + 1 : 0));
    if (goes_on) CHECK(tokens[k] == tokens[k - 1] + 1);
  }
  CHECK(sum == doctest::Approx(36));
}

TEST_CASE("padded rows are samples of the data set, cut to their bucket") {
  Texts made = make_texts({3, 20, 1, 0, 2, 9});
  for (int64_t& index : made.indices) index = 3 * index + 1;  // as of a part of a data set
  const auto texts = texts_of(std::move(made));
  const TokenOptions options = token_options(Layout::padded, Learn::nothing, 16);
  const TokenPart part(texts, options);
  CHECK(names_of(part) == std::vector<std::string>{"tokens", "segments"});
  PlanOptions plan = plan_options(4, "sequential", false);
  plan.buckets = {4, 16};
  const auto rows = token_rows(texts, options, plan);
  CHECK(rows->lengths() == std::vector<int64_t>{4, 16});
  CHECK(rows->whole_batches());
  CHECK(rows->count() == 6);
  const TokenBatch first = batch_at(part, *rows, {1, 0, 0}, 4), second = batch_at(part, *rows, {1, 0, 4}, 4);
  CHECK(first.length == 4);
  CHECK(first.samples == std::vector<int64_t>{10, 7, 13, 1});
  CHECK(first.arrays.at("segments") == std::vector<int64_t>{0, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 0});
  CHECK(first.arrays.at("tokens") == std::vector<int64_t>{0, 0, 0, 0, 23, 0, 0, 0, 24, 25, 0, 0, 0, 1, 2, 0});
  CHECK(second.length == 16);
  CHECK(second.samples == std::vector<int64_t>{16, 4});
  CHECK(second.arrays.at("tokens")[16] == 3);
  CHECK(second.arrays.at("tokens")[31] == 18);  // 20 tokens are cut to 16
  CHECK(second.arrays.at("segments")[32] == 0);
  CHECK_THROWS_AS(part.extract(2, 16), InternalError);
  CHECK_THROWS_AS(part.extract(100, 16), InternalError);
  CHECK(rows->describe().size() == 1);
  CHECK(texts->longer_than(16) == 1);
}

TEST_CASE("padded rows of a fixed length have it whatever the batch's is") {
  const auto texts = texts_of(make_texts({3, 20}));
  TokenOptions options = token_options(Layout::padded, Learn::nothing, 6);
  options.fixed = true;
  const TokenPart part(texts, options);
  CHECK(part.fields()[0].type == Type{i64, {Dim::named("batch"), 6}});
  std::vector<int64_t> tokens(6, 99), segments(6, 99);
  std::byte* const places[] = {reinterpret_cast<std::byte*>(tokens.data()),
                               reinterpret_cast<std::byte*>(segments.data())};
  Row row{{1, 0, 0, 0}, 2, {}};
  part.put(nullptr, row, nullptr, places);
  CHECK(segments == std::vector<int64_t>{1, 1, 1, 0, 0, 0});
  row.key.index = 1;
  part.put(nullptr, row, nullptr, places);
  CHECK(tokens == std::vector<int64_t>{3, 4, 5, 6, 7, 8});
}

TEST_CASE("texts that are read one by one make the rows that they make when they are read as a whole") {
  const auto samples = memory_dataset("there", {{"text", ColumnKind::text}, {"n", ColumnKind::integer}},
                                      {{std::string("abcdefgh"), int64_t{1}},
                                       {std::string("xy"), int64_t{2}},
                                       {std::string(), int64_t{3}},
                                       {Value(), int64_t{4}}});
  for (const Learn learn : {Learn::nothing, Learn::next, Learn::masked}) {
    TokenOptions options = token_options(Layout::padded, learn, 5);
    options.fixed = true;
    options.spans = SpanOptions{0.3, 2};
    TextOptions texts;
    texts.column = "text";
    texts.special = true;
    const TokenPart all(texts_of(read_texts(*samples, *byte_tokenizer(), texts)), options);
    const TokenPart each(TextReader{byte_tokenizer(), ColumnPlace(*samples, "text"), ""}, options);
    REQUIRE(names_of(all) == names_of(each));
    CHECK(each.stored_bytes() > 0);
    std::vector<std::byte> stored(each.stored_bytes());
    const auto rows_of = [&](const TokenPart& part, int64_t index) {
      std::vector<std::vector<int64_t>> arrays(part.fields().size(), std::vector<int64_t>(5));
      std::vector<std::byte*> places;
      for (auto& array : arrays) places.push_back(reinterpret_cast<std::byte*>(array.data()));
      part.put(stored.data(), {{1, 0, index, index}, 0, {}}, nullptr, places);
      return arrays;
    };
    for (int64_t i = 0; i < samples->count(); ++i) {
      CHECK(each.read(*samples, i, nullptr, nullptr, stored.data()).empty());
      CHECK(rows_of(each, i) == rows_of(all, i));
    }
  }
  const TokenPart numbers(TextReader{byte_tokenizer(), ColumnPlace(*samples, "n"), ""},
                          token_options(Layout::padded, Learn::nothing, 5));
  std::vector<std::byte> stored(numbers.stored_bytes());
  CHECK(numbers.read(*samples, 0, nullptr, nullptr, stored.data()) == "its 'n' is no text");
}

TEST_CASE("rows are the same for threads that ask for neighbouring epochs at once") {
  const auto texts = texts_of(make_texts({40, 5, 17, 9, 30, 22, 8, 13, 40, 3, 12, 31}));
  for (const Layout layout : {Layout::windows, Layout::packed, Layout::padded}) {
    TokenOptions options = token_options(layout, Learn::masked, 16);
    options.spans = SpanOptions{0.3, 2};
    const TokenPart part(texts, options);
    PlanOptions plan = plan_options(2);
    if (layout == Layout::padded) plan.buckets = {8, 16};
    const auto rows = token_rows(texts, options, plan), other = token_rows(texts, options, plan);
    const int64_t batches = rows->count() / 2;
    std::vector<TokenBatch> wanted;
    for (int64_t b = 0; b < 6 * batches; ++b)
      wanted.push_back(batch_at(part, *rows, {1, b / batches, b % batches * 2}, 2));
    bool other_epochs = false;
    for (size_t b = 0; b < static_cast<size_t>(batches); ++b)
      other_epochs |= wanted[b].arrays != wanted[b + static_cast<size_t>(batches)].arrays;
    CHECK(other_epochs);
    std::vector<TokenBatch> got(wanted.size());
    std::vector<std::thread> threads;
    for (size_t t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        for (size_t b = got.size(); b-- > 0;)
          if (b % 4 == t)
            got[b] =
                batch_at(part, *other,
                         {1, static_cast<int64_t>(b) / batches, static_cast<int64_t>(b) % batches * 2}, 2);
      });
    for (std::thread& thread : threads) thread.join();
    for (size_t b = 0; b < got.size(); ++b) {
      CHECK(got[b].arrays == wanted[b].arrays);
      CHECK(got[b].counted == wanted[b].counted);
      CHECK(got[b].samples == wanted[b].samples);
    }
  }
}

TEST_CASE("masked tokens are the targets, and only those") {
  const auto texts = texts_of(make_texts({2000}));
  TokenOptions options = token_options(Layout::windows, Learn::masked, 200);
  options.spans = SpanOptions{0.2, 4};
  const TokenPart part(texts, options);
  CHECK(names_of(part) == std::vector<std::string>{"tokens", "targets", "counted"});
  const auto rows = token_rows(texts, options, plan_options(2));
  int64_t masked = 0, kept = 0, replaced = 0, places = 0;
  for (int64_t i = 0; i < 50; ++i) {
    const TokenBatch batch = batch_at(part, *rows, {1, i / 4, i % 4 * 2}, 2);
    float sum = 0;
    for (size_t k = 0; k < 400; ++k) {
      ++places;
      sum += batch.counted[k];
      const int64_t token = batch.arrays.at("tokens")[k], target = batch.arrays.at("targets")[k];
      CHECK((batch.counted[k] > 0) == (target >= 0));
      if (target < 0) continue;
      ++(token == 1000 ? masked : token == target ? kept : replaced);
    }
    CHECK(sum == doctest::Approx(400));
  }
  const auto all = static_cast<double>(masked + kept + replaced);
  CHECK(all / static_cast<double>(places) == doctest::Approx(0.2).epsilon(0.001));
  CHECK(static_cast<double>(masked) / all == doctest::Approx(0.8).epsilon(0.05));
  CHECK(static_cast<double>(kept) / all == doctest::Approx(0.1).epsilon(0.3));
  CHECK_THROWS_WITH_AS(TokenPart(texts, token_options(Layout::windows, Learn::masked, 1)),
                       doctest::Contains("input.length = 1"), InputError);
}

TEST_CASE("a part of tokens says what they take") {
  const auto texts = texts_of(make_texts({100, 200}));
  const TokenPart windows(texts, token_options(Layout::windows, Learn::next, 10));
  CHECK(windows.memory() == 300 * 2 + (3 + 2) * 8);
  const TokenPart padded(texts, token_options(Layout::padded, Learn::next, 10));
  CHECK(padded.memory() == windows.memory() + 2 * 8);
  Texts in_file = *texts;
  in_file.file = "a.tokens";
  CHECK(TokenPart(texts_of(std::move(in_file)), padded.options()).memory() == padded.memory() - 600);
}
