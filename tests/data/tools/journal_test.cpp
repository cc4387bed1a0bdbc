#include "data/tools/journal.h"

#include <algorithm>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "support/disk_calls.h"
#include "support/temp_folder.h"

using namespace millrace;
using millrace::testing::TempFolder;

namespace {

std::vector<std::string> records_of(const std::filesystem::path& path, const std::string& identity,
                                    bool& replaced) {
  std::vector<std::string> found;
  data::Journal journal(
      path, identity, [&](std::string_view record) { found.emplace_back(record); }, replaced);
  return found;
}

}  // namespace

TEST_CASE("a journal has its whole records, wherever it was cut off or damaged") {
  const TempFolder folder;
  const std::filesystem::path path = folder.path() / "journal";
  bool replaced = true;
  {
    data::Journal journal(
        path, "of this", [](std::string_view) { FAIL("there is none"); }, replaced);
    CHECK(!replaced);
    journal.add("first");
    journal.add("");
    journal.add(std::string(1000, 'x'));
  }
  const std::vector<std::string> all = {"first", "", std::string(1000, 'x')};
  CHECK(records_of(path, "of this", replaced) == all);
  CHECK(!replaced);
  const std::string whole = read_text(path);
  const size_t third = whole.size() - 1000 - 16;
  for (const size_t size : {whole.size() - 1, third + 16, third + 3, third}) {
    CAPTURE(size);
    write_file(path, whole.substr(0, size));
    CHECK(records_of(path, "of this", replaced) == std::vector<std::string>{"first", ""});
    CHECK(std::filesystem::file_size(path) == third);  // what follows begins there
  }
  for (const size_t at : {third + 2, third + 9, third + 500}) {
    CAPTURE(at);
    std::string damaged = whole;
    damaged[at] ^= 4;
    write_file(path, damaged);
    CHECK(records_of(path, "of this", replaced).size() == 2);
  }
  write_file(path, whole);
  CHECK(records_of(path, "of that", replaced).empty());
  CHECK(replaced);
  write_file(path, std::string_view("something else"));
  CHECK(records_of(path, "of this", replaced).empty());
  CHECK(replaced);
}

TEST_CASE("a journal is flushed to the disk, but not with every record") {
  const TempFolder folder;
  const std::vector<std::string> calls = testing::disk_calls([&] {
    bool replaced = false;
    data::Journal journal(
        folder.path() / "journal", "of this", [](std::string_view) {}, replaced);
    for (int i = 0; i < 100; ++i) journal.add("record");
  });
  const auto flushes = std::count(calls.begin(), calls.end(), "flush file");
  CHECK(flushes >= 1);
  CHECK(flushes < 50);
}
