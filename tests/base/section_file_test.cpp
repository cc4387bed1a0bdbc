#include "base/section_file.h"

#include <doctest/doctest.h>
#include <string>

#include <millrace/error.h>

#include "support/temp_folder.h"

using namespace millrace;

namespace {

constexpr std::string_view kTestMagic = "SECTEST!";

std::string written_sections(const testing::TempFolder& folder) {
  const std::string name = (folder / "file").string();
  SectionWriter writer(name, kTestMagic, 3);
  const std::vector<uint8_t> first(100, 1), second(10, 2);
  const std::span<const uint8_t> parts[] = {first, second};
  CHECK(writer.add("parts", parts) == std::vector<uint64_t>{0, 128});
  writer.add("empty", "");
  writer.add("text", "some words");
  writer.commit();
  return read_text(name);
}

}  // namespace

TEST_CASE("sections come back as they were written") {
  testing::TempFolder folder;
  written_sections(folder);
  const SectionFile file(folder / "file", kTestMagic, 3);
  REQUIRE(file.sections().size() == 3);
  CHECK(file.text("text", true) == "some words");
  CHECK(file.bytes("empty", true).empty());
  const auto parts = file.bytes("parts", true);
  REQUIRE(parts.size() == 138);
  CHECK(parts[99] == 1);
  CHECK(parts[100] == 0);
  CHECK(parts[128] == 2);
  for (const Section& section : file.sections()) CHECK(section.offset % kSectionPage == 0);
  CHECK_THROWS_WITH_AS(file.bytes("other", false), doctest::Contains("lacks its section 'other'"),
                       InputError);
  file.verify();
}

TEST_CASE("whatever byte of such a file is changed, and wherever it ends, that is noticed") {
  testing::TempFolder folder;
  const std::string whole = written_sections(folder);
  const auto verified = [&](const std::string& bytes) {
    write_file(folder / "file", bytes);
    SectionFile(folder / "file", kTestMagic, 3).verify();
  };
  verified(whole);
  for (size_t at = 0; at < whole.size(); at += at < 200 || at + 400 > whole.size() ? 1 : 37) {
    CAPTURE(at);
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    CHECK_THROWS_AS(verified(damaged), InputError);
  }
  for (size_t size = 0; size<whole.size(); size += size + 300> whole.size() ? 1 : 61)
    CHECK_THROWS_AS(verified(whole.substr(0, size)), InputError);
  CHECK_THROWS_AS(verified(whole + "more"), InputError);
  std::string other = whole;
  other[8] = 4;
  CHECK_THROWS_WITH_AS(verified(other), doctest::Contains("is of version 4, but only version 3 can be read"),
                       InputError);
}
