#include "data/feed/sequences/window_stream.h"

#include <cstring>
#include <doctest/doctest.h>

#include <millrace/dataset.h>
#include <millrace/error.h>

#include "support/streams.h"
#include "support/temp_folder.h"

using namespace millrace;
using namespace millrace::data;
using namespace millrace::testing;

namespace {

std::unique_ptr<Stream> windows_of(const std::string& path, int64_t length, int64_t behind) {
  WindowOptions options;
  options.tokenizer = byte_tokenizer();
  options.column = [](const Dataset& sample) { return sample.columns()[sample.column("text")].name; };
  options.separator = "|";
  options.length = length;
  options.behind = behind;
  return window_stream(open_stream(path), std::move(options));
}

/// As texts; a fault in brackets.
std::vector<std::string> all_windows(Stream& stream) {
  std::vector<std::string> windows;
  StreamRecord record;
  for (int64_t number = 0; stream.next(record); ++number) {
    CHECK(record.at.number == number);
    if (!record.fault.empty()) {
      windows.push_back("[" + record.fault + "]");
      continue;
    }
    const auto sample = stream.samples({&record, 1});
    const Bytes bytes = std::get<Bytes>(sample->read(0, sample->column("text")));
    std::vector<int32_t> ids(bytes.size() / sizeof(int32_t));
    std::memcpy(ids.data(), bytes.data(), bytes.size());
    windows.emplace_back(ids.begin(), ids.end());
  }
  return windows;
}

}  // namespace

TEST_CASE("texts of a stream become windows, each with the first token of the next") {
  const TempFolder folder;
  const std::string path = (folder.path() / "a.jsonl").string();
  put_file(path, "{\"text\": \"abcde\"}\n{\"text\": \"\"}\n{\"text\": \"fghijklm\"}\n");
  const auto stream = windows_of(path, 4, 1);
  const std::vector<std::string> wanted = {"abcde", "e||fg", "ghijk"};
  CHECK(all_windows(*stream) == wanted);
  // Again from the beginning; what was left over belongs to no other pass.
  stream->seek({2, 0, 7});
  CHECK(all_windows(*stream) == wanted);
  CHECK(all_windows(*windows_of(path, 4, 0)) == std::vector<std::string>{"abcd", "e||f", "ghij", "klm|"});
  CHECK(stream->path() == path);
}

TEST_CASE("a text of a stream that cannot be read is a record with its fault") {
  const TempFolder folder;
  const std::string path = (folder.path() / "a.jsonl").string();
  put_file(path, "{\"text\": \"abcd\"}\n{broken\n{\"text\": \"efg\"}\n");
  const auto windows = all_windows(*windows_of(path, 2, 0));
  REQUIRE(windows.size() == 5);
  CHECK(windows[1] == "cd");
  CHECK(windows[2].starts_with("["));
  CHECK(windows[4] == "fg");
}
