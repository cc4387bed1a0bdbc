#include "base/mapped_file.h"

#include <chrono>
#include <doctest/doctest.h>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <millrace/error.h>

#include "base/file.h"
#include "support/temp_folder.h"

using namespace millrace;

TEST_CASE("a mapped file that is cut short gives zeros and says so, instead of ending the process") {
  const testing::TempFolder folder;
  const auto path = folder.path() / "shard.tar", other = folder.path() / "other.tar";
  const std::vector<uint8_t> bytes(300'000, 7);
  write_file(path, bytes);
  write_file(other, bytes);
  MappedFile opened(path);
  const MappedFile file(std::move(opened)), whole(other);
  CHECK(file.bytes()[299'999] == 7);
  CHECK_NOTHROW(require_mapped_files());
  std::filesystem::resize_file(path, 5000);
  CHECK(file.bytes()[299'999] == 0);
  CHECK(file.bytes()[200'000] == 0);
  CHECK(file.bytes()[10] == 7);
  CHECK(file.lost());
  CHECK(!whole.lost());
  CHECK(whole.bytes()[299'999] == 7);
  CHECK_THROWS_WITH_AS(require_mapped_files(), doctest::Contains("shard.tar: a part of it was gone"),
                       IoError);
  { const MappedFile gone(std::move(const_cast<MappedFile&>(file))); }
  CHECK_NOTHROW(require_mapped_files());
}

TEST_CASE("of a place in memory only its own file is looked at") {
  const testing::TempFolder folder;
  const std::vector<uint8_t> bytes(10'000, 'a');
  write_file(folder.path() / "one", bytes);
  write_file(folder.path() / "two", bytes);
  const MappedFile one(folder.path() / "one"), two(folder.path() / "two");
  CHECK_NOTHROW(require_mapped_file(one.bytes().data()));
  std::filesystem::resize_file(folder.path() / "two", 9'000);
  CHECK_NOTHROW(require_mapped_file(&one.bytes()[9'999]));
  CHECK_THROWS_WITH_AS(require_mapped_file(&two.bytes()[5]), doctest::Contains("two: it was changed"),
                       IoError);
  CHECK_THROWS_AS(require_mapped_file(bytes.data()), IoError);  // it might come from any
  CHECK_THROWS_AS(require_mapped_file(nullptr), IoError);
}

TEST_CASE("a mapped file that changes is noticed; another one in its place does not matter") {
  const testing::TempFolder folder;
  const auto path = folder.path() / "table.csv";
  const std::vector<uint8_t> bytes(10'000, 'a'), longer(20'000, 'b');
  const auto mapped = [&] {
    write_file(path, bytes);
    return MappedFile(path);
  };
  {
    const MappedFile file = mapped();
    write_file(path, longer);  // a new file of the same name
    CHECK_NOTHROW(require_mapped_files(true));
    CHECK(file.bytes()[9000] == 'a');
    std::filesystem::remove(path);
    CHECK_NOTHROW(require_mapped_files(true));
  }
  {
    const MappedFile file = mapped();
    std::filesystem::resize_file(path, 9'500);
    CHECK_THROWS_WITH_AS(require_mapped_files(true), doctest::Contains("changed while it was read"), IoError);
  }
  {
    const MappedFile file = mapped();
    std::filesystem::resize_file(path, 12'000);  // something was added
    CHECK_NOTHROW(require_mapped_files(true));
  }
  {
    const MappedFile file = mapped();
    std::filesystem::last_write_time(path, std::filesystem::last_write_time(path) + std::chrono::seconds(3));
    CHECK_THROWS_AS(require_mapped_files(true), IoError);
  }
  CHECK_NOTHROW(require_mapped_files(true));
}
