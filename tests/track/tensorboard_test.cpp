#include "track/tensorboard.h"

#include <doctest/doctest.h>

#include "base/file.h"
#include "base/format.h"
#include "support/temp_folder.h"

using namespace millrace;
using namespace millrace::track;

namespace {

std::string hex(const std::string& bytes) {
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

std::filesystem::path only_file(const std::filesystem::path& folder) {
  const std::filesystem::directory_iterator files(folder);
  CHECK(std::distance(begin(files), end(files)) == 1);
  return std::filesystem::directory_iterator(folder)->path();
}

}  // namespace

TEST_CASE("event records are those that TensorFlow writes, byte for byte") {
  CHECK(hex(file_version_record(1.0)) ==
        "1800000000000000a37f4b2209000000000000f03f1a0d627261696e2e4576656e743a3286bf577a");
  CHECK(hex(scalar_record(2.0, 7, "loss", 0.5f)) ==
        "1a00000000000000129bd82d09000000000000004010072a0d0a0b0a046c6f7373150000003fc33fc24a");
}

TEST_CASE("a resumed event file loses what came after the checkpoint, and a record that a kill cut off") {
  testing::TempFolder folder;
  const auto write = [](EventWriter& writer, int64_t from, int64_t to) {
    const auto names = std::make_shared<Names>(Names{{"epoch", "loss"}, {"", "train/loss"}});
    for (int64_t step = from; step <= to; ++step)
      writer.write({names, step, 3.0, {7, 1.0 / static_cast<double>(step)}});
    writer.flush();
  };
  {
    EventWriter writer(folder.path());
    write(writer, 1, 300);
  }
  const std::string whole = read_text(only_file(folder.path()));
  CHECK(whole.substr(whole.size() - scalar_record(3.0, 300, "train/loss", 1.0f / 300).size()) ==
        scalar_record(3.0, 300, "train/loss", 1.0f / 300));
  std::filesystem::resize_file(only_file(folder.path()), whole.size() - 5);
  {
    EventWriter writer(folder.path(), 200);
    write(writer, 201, 300);
  }
  const std::string resumed = read_text(only_file(folder.path()));
  REQUIRE(resumed.size() == whole.size());
  // Only wall times (8 bytes a record) and the checksums over them may differ.
  const size_t record = scalar_record(0, 200, "train/loss", 0).size();
  const auto last_value = [&](const std::string& text) { return text.substr(text.size() - 8, 4); };
  CHECK(last_value(resumed) == last_value(whole));
  CHECK(resumed.substr(0, whole.size() - 100 * record) == whole.substr(0, whole.size() - 100 * record));
}
