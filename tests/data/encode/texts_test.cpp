#include "data/encode/texts.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <doctest/doctest.h>

#include <millrace/error.h>

#include "base/crc32c.h"
#include "base/file.h"
#include "base/format.h"
#include "data/feed/sample_feed.h"
#include "data/feed/sequences/token_part.h"
#include "data/feed/sequences/token_rows.h"
#include "data/formats/open_dataset.h"
#include "data/table/query.h"
#include "data/table/select.h"
#include "support/cache_variable.h"
#include "support/temp_folder.h"

using namespace millrace;
using namespace millrace::data;
using namespace millrace::testing;

namespace {

std::string text_of(const Texts& texts) {
  std::vector<int64_t> ids(static_cast<size_t>(texts.tokens.size()));
  texts.tokens.get(0, ids);
  return {ids.begin(), ids.end()};
}

Texts read(const std::filesystem::path& path, const TextOptions& options) {
  return read_texts(*open_dataset(path.string()), *byte_tokenizer(), options);
}

}  // namespace

TEST_CASE("texts joined are the file again, its end is kept to test on") {
  TempFolder folder;
  std::string whole;
  for (int i = 0; i < 3000; ++i)
    whole += std::string(static_cast<size_t>(i % 7), static_cast<char>('a' + i % 26)) + "\n";
  write_file(folder / "t.txt", whole);
  TextOptions options;
  options.separator = "\n";
  const Texts all = read(folder / "t.txt", options);
  CHECK(all.path == (folder / "t.txt").string());
  CHECK(all.count() == 3000);
  CHECK(text_of(all) == whole);
  CHECK(all.bytes == static_cast<int64_t>(whole.size()));
  options.test_share = 0.1;
  options.part = TextOptions::Part::train;
  const Texts train = read(folder / "t.txt", options);
  options.part = TextOptions::Part::test;
  const Texts test = read(folder / "t.txt", options);
  CHECK(text_of(train) + text_of(test) == whole);
  CHECK(train.bytes + test.bytes == all.bytes);
  CHECK(static_cast<double>(test.tokens.size()) / static_cast<double>(all.tokens.size()) ==
        doctest::Approx(0.1).epsilon(0.01));
  CHECK(test.indices.front() == train.count());
}

TEST_CASE("of one long text the end is kept") {
  TempFolder folder;
  write_file(folder / "t.jsonl", "{\"text\": \"0123456789\"}\n");
  TextOptions options;
  options.test_share = 0.2;
  options.part = TextOptions::Part::train;
  CHECK(text_of(read(folder / "t.jsonl", options)) == "01234567");
  options.part = TextOptions::Part::test;
  CHECK(text_of(read(folder / "t.jsonl", options)) == "89");
}

TEST_CASE("what cannot be read as texts is refused by column") {
  TempFolder folder;
  write_file(folder / "two.csv", "a,b,n\nx,y,1\nz,w,2\n");
  const auto refuse = [&](const char* file, TextOptions options, const char* why) {
    CHECK_THROWS_WITH_AS(read(folder / file, options), doctest::Contains(why), InputError);
  };
  refuse("two.csv", {}, "Set input.column to one of a, b");
  TextOptions options;
  options.column = "n";
  refuse("two.csv", options, "the column 'n' holds no texts but integers");
  options.column = "c";
  refuse("two.csv", options, "'c'");
  write_file(folder / "numbers.csv", "a\n1\n2\n");
  refuse("numbers.csv", {}, "no column of texts");
}

namespace {

/// Counts what it is asked for.
class Counting final : public Tokenizer {
 public:
  mutable std::atomic<int64_t> asked = 0;
  bool wide = false;
  std::string description() const override { return "counting"; }
  int64_t size() const override { return wide ? 100'000 : 256; }
  using Tokenizer::encode;
  void encode(std::string_view text, bool, std::vector<int32_t>& ids) const override {
    ++asked;
    for (const char c : text) ids.push_back(static_cast<uint8_t>(c) + (wide ? 70'000 : 0));
  }
  std::string decode(std::span<const int32_t>, bool) const override { return {}; }
  std::string token(int32_t) const override { return {}; }
  std::optional<int32_t> id(std::string_view) const override { return std::nullopt; }
  uint32_t digest() const override { return wide ? 2 : 1; }
};

using Layout = TokenOptions::Layout;

/// All batches of two epochs.
std::vector<std::vector<std::byte>> batches_of(Texts texts, Layout layout) {
  TokenOptions options;
  options.layout = layout;
  options.length = 16;
  options.vocabulary = 100'000;
  options.learn = TokenOptions::Learn::next;
  PlanOptions plan;
  plan.length = 16;
  plan.batch = 4;
  if (layout == Layout::padded) plan.buckets = {8, 16};
  const auto shared = std::make_shared<const Texts>(std::move(texts));
  FeedOptions given;
  given.batch = 4;
  given.drop_last = true;
  given.path = "texts";
  const auto feed = sample_feed(nullptr, {{"", std::make_shared<TokenPart>(shared, options)}},
                                token_rows(shared, options, plan), given);
  std::vector<std::vector<std::byte>> all;
  for (int64_t b = 0; b < 2 * feed->batches_per_epoch(); ++b)
    for (const auto& array : feed->next().arrays) all.emplace_back(array.begin(), array.end());
  return all;
}

std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  if (std::filesystem::exists(folder))
    for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
  return files;
}

}  // namespace

TEST_CASE("tokens that do not fit into memory lie in a file, give the same samples, and are found again") {
  CacheVariable cache;
  TempFolder folder;
  std::string csv = "text,label\n", one;
  for (int i = 0; i < 2500; ++i)
    csv += fmt::format("{},{}\n",
                       std::string(static_cast<size_t>(1 + i % 19), static_cast<char>('a' + i % 26)), i % 3);
  write_file(folder / "t.csv", csv);
  write_file(folder / "one.txt", std::string(5000, 'x') + "end");
  const auto open = [&](const Tokenizer& tokenizer, TextOptions options, const char* name = "t.csv") {
    options.column = "text";
    return read_texts(*open_dataset((folder / name).string()), tokenizer, options);
  };
  Counting counting;
  for (const bool wide : {false, true}) {
    counting.wide = wide;
    for (const auto part : {TextOptions::Part::train, TextOptions::Part::test, TextOptions::Part::all}) {
      TextOptions options;
      options.part = part;
      options.test_share = 0.2;
      std::filesystem::remove_all(cache.path() / "tokens");
      const Texts judge = open(counting, options);
      CHECK(judge.file.empty());
      for (const int64_t most : {0, 1000, 0}) {
        options.most_bytes = most;
        const Texts texts = open(counting, options);
        CHECK(!texts.file.empty());
        CHECK(texts.begins == judge.begins);
        CHECK(texts.indices == judge.indices);
        CHECK(texts.bytes == judge.bytes);
        for (const Layout rows : {Layout::windows, Layout::packed, Layout::padded})
          CHECK(batches_of(texts, rows) == batches_of(judge, rows));
      }
    }
  }
  // Of one text a part is the end.
  TextOptions options;
  options.test_share = 0.1;
  options.part = TextOptions::Part::test;
  const Texts end = open(counting, options, "one.txt");
  options.most_bytes = 0;
  {
    const Texts mapped = open(counting, options, "one.txt");
    CHECK(mapped.begins == end.begins);
    CHECK(batches_of(mapped, Layout::windows) == batches_of(end, Layout::windows));
  }

  // Found again; not when the source is another, or the file is damaged.
  const auto asked = [&] {
    const int64_t before = counting.asked;
    (void)open(counting, options, "one.txt");
    return counting.asked - before;
  };
  CHECK(asked() == 0);
  for (const auto& file : files_in(cache.path() / "tokens")) std::filesystem::resize_file(file, 100);
  CHECK(asked() == 1);
  CHECK(asked() == 0);
  write_file(folder / "one.txt", std::string(5000, 'y') + "end");
  CHECK(asked() == 1);
  for (const auto& file : files_in(cache.path() / "tokens")) {
    auto bytes = read_file(file);
    bytes[bytes.size() - 50] ^= 1;  // of the key
    write_file(file, bytes);
  }
  CHECK(asked() == 1);
  // Where it cannot be told whether the source is the same, the file has no name for long.
  const size_t files = files_in(cache.path() / "tokens").size();
  const auto chosen = where(open_dataset((folder / "t.csv").string()), "label < 2");
  const Texts some = read_texts(*chosen, *byte_tokenizer(), [] {
    TextOptions of;
    of.column = "text";
    of.most_bytes = 0;
    return of;
  }());
  CHECK(!some.file.empty());
  CHECK(some.count() == 1667);
  CHECK(text_of(some).starts_with("abb"));
  CHECK(files_in(cache.path() / "tokens").size() == files);
}

TEST_CASE("tokens that were damaged in their file, or that it lost meanwhile, are no samples") {
  CacheVariable cache;
  TempFolder folder;
  write_file(folder / "one.jsonl", "{\"text\": \"" + std::string(100'000, 'x') + "\"}\n");
  TextOptions options;
  options.most_bytes = 0;
  const auto read_again = [&] { return read(folder / "one.jsonl", options); };
  CHECK(text_of(read_again()) == std::string(100'000, 'x'));
  const auto files = files_in(cache.path() / "tokens");
  REQUIRE(files.size() == 1);
  const auto whole = read_file(files[0]);

  auto bytes = whole;
  bytes[50'001] ^= 0x40;  // the high byte of a token
  write_file(files[0], bytes);
  const Texts damaged = read_again();
  CHECK_THROWS_WITH_AS(text_of(damaged),
                       doctest::Contains("of a vocabulary of 256: it is damaged; remove it"), IoError);
  std::vector<int64_t> before(10);
  damaged.tokens.get(0, before);
  CHECK(before == std::vector<int64_t>(10, 'x'));

  // A text of fewer bytes than none, under a checksum that fits.
  bytes = whole;
  uint8_t* const trailer = bytes.data() + bytes.size() - 48;
  uint64_t key = 0;
  std::memcpy(&key, trailer + 32, sizeof key);
  uint8_t* const tables = trailer - key - 16;  // where the text ends, its bytes
  tables[15] = 0x80;
  const uint32_t crc = crc32c(tables, 16 + key);
  std::memcpy(trailer + 40, &crc, sizeof crc);
  write_file(files[0], bytes);
  CHECK(read_again().bytes == 100'000);

  write_file(files[0], whole);
  const Texts cut = read_again();
  std::filesystem::resize_file(files[0], 4096);
  CHECK_THROWS_WITH_AS(text_of(cut), doctest::Contains("a part of it was gone"), IoError);
}

TEST_CASE("unfinished files of tokens are removed when nobody writes to them any more") {
  CacheVariable cache;
  TempFolder folder;
  write_file(folder / "one.jsonl", "{\"text\": \"abc\"}\n");
  const auto tokens = cache.path() / "tokens";
  const auto now = std::filesystem::file_time_type::clock::now();
  for (const auto& [name, hours] :
       {std::pair("0123.tokens.tmp-1-0", 2), std::pair("unnamed-1-0.tokens", 2),
        std::pair("4567.tokens.tmp-1-0", 0), std::pair("89ab.tokens", 2), std::pair("of a user's", 2)}) {
    write_file(tokens / name, "");
    std::filesystem::last_write_time(tokens / name, now - std::chrono::hours(hours));
  }
  TextOptions options;
  options.most_bytes = 0;
  (void)read(folder / "one.jsonl", options);
  CHECK(files_in(tokens).size() == 4);
  CHECK(!std::filesystem::exists(tokens / "0123.tokens.tmp-1-0"));
  CHECK(!std::filesystem::exists(tokens / "unnamed-1-0.tokens"));
}
