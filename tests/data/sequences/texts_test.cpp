#include "data/sequences/texts.h"

#include <doctest/doctest.h>
#include <set>

#include <millrace/error.h>

#include "base/file.h"
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

TEST_CASE("texts with classes are split by a hash: disjoint, together all, about the share") {
  TempFolder folder;
  std::string rows = "label\ttext\n";
  for (int i = 0; i < 4000; ++i)
    rows += std::string(i % 3 ? "ham" : "spam") + "\tmessage " + std::to_string(i) + "\n";
  write_file(folder / "t.tsv", rows);
  TextOptions options;
  options.label = "label";
  options.column = "text";
  options.test_share = 0.25;
  options.part = TextOptions::Part::train;
  const Texts train = read(folder / "t.tsv", options);
  options.part = TextOptions::Part::test;
  const Texts test = read(folder / "t.tsv", options);
  CHECK(train.classes == std::vector<std::string>{"ham", "spam"});
  CHECK(train.count() + test.count() == 4000);
  std::set<int64_t> seen(train.indices.begin(), train.indices.end());
  seen.insert(test.indices.begin(), test.indices.end());
  CHECK(seen.size() == 4000);
  CHECK(test.count() == doctest::Approx(1000).epsilon(0.1));
  for (int64_t i = 0; i < test.count(); ++i)
    CHECK(test.labels[static_cast<size_t>(i)] == (test.indices[static_cast<size_t>(i)] % 3 ? 0 : 1));
  options.classes = {"ham"};
  CHECK_THROWS_WITH_AS(read(folder / "t.tsv", options),
                       doctest::Contains("'spam', which the model does not know"), InputError);
}

TEST_CASE("what cannot be read as texts is refused by column") {
  TempFolder folder;
  write_file(folder / "two.csv", "a,b,n\nx,y,1\nz,w,2\n");
  const auto refuse = [&](const char* file, TextOptions options, const char* why) {
    CHECK_THROWS_WITH_AS(read(folder / file, options), doctest::Contains(why), InputError);
  };
  refuse("two.csv", {}, "Set data.text to one of a, b");
  TextOptions options;
  options.column = "n";
  refuse("two.csv", options, "the column 'n' holds no texts but integers");
  options.column = "a";
  options.label = "c";
  refuse("two.csv", options, "'c'");
  options.label = "n";
  options.most_bytes = 1;
  refuse("two.csv", options, "data.cache_mb");
  options.most_bytes = 1000;
  CHECK(read(folder / "two.csv", options).classes == std::vector<std::string>{"1", "2"});
  write_file(folder / "numbers.csv", "a\n1\n2\n");
  refuse("numbers.csv", {}, "no column of texts");
}
