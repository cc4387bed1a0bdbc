#include "track/safetensors.h"

#include <doctest/doctest.h>

#include <millrace/error.h>
#include <millrace/random.h>

#include "base/file.h"
#include "support/temp_folder.h"

using namespace millrace;
using namespace millrace::track;

namespace {

NamedArrays some_tensors() {
  NamedArrays tensors;
  int i = 0;
  for (const DType dtype : all_dtypes()) {
    // The format has no numbers of less than a byte, and not all floats of 8 bits.
    if ((dtype.bits < 8 && !dtype.is_bool()) || dtype.name().ends_with("fnuz")) continue;
    tensors.emplace_back("layers." + std::to_string(i++) + "." + dtype.name(),
                         Array::of(dtype, {2, 3}, std::vector<double>{0, 1, 0, 1, 1, 0}));
  }
  tensors.emplace_back("scalar", Array::scalar(f32, 2.5));
  tensors.emplace_back("empty", Array(f32, {0, 4}));
  return tensors;
}

std::vector<uint8_t> with_header(const std::string& header, size_t data) {
  const uint64_t length = header.size();
  std::string text(reinterpret_cast<const char*>(&length), sizeof length);
  text += header + std::string(data, '\0');
  return {text.begin(), text.end()};
}

}  // namespace

TEST_CASE("safetensors keep every dtype, names, shapes and metadata") {
  testing::TempFolder folder;
  const auto tensors = some_tensors();
  write_safetensors(folder / "a.safetensors", tensors, {{"schema", "1"}, {"note", "ü \"quoted\""}});
  const SafeTensors file(folder / "a.safetensors");
  CHECK(file.has_checksum());
  CHECK(file.metadata() == Metadata{{"schema", "1"}, {"note", "ü \"quoted\""}});
  CHECK(file.names().size() == tensors.size());
  for (const auto& [name, array] : tensors) {
    CHECK(file.has(name));
    CHECK(file.type(name) == array.type());
    CHECK(file.tensor(name).identical(array));
  }
  CHECK_THROWS_AS(file.tensor("missing"), InputError);
  // Metadata of one file may go into another, its checksum among them.
  write_safetensors(folder / "b.safetensors", tensors, {{"note", "x"}, {"millrace.crc32c", "01234567"}});
  CHECK(SafeTensors(folder / "b.safetensors").metadata() == Metadata{{"note", "x"}});
}

TEST_CASE("any single damaged byte and any cut of a checksummed file is found") {
  testing::TempFolder folder;
  write_safetensors(folder / "a.safetensors", some_tensors(), {{"step", "17"}});
  const std::vector<uint8_t> good = read_file(folder / "a.safetensors");
  const auto accepted = [](std::span<const uint8_t> bytes) {
    try {
      return SafeTensors(bytes, "damaged")
          .has_checksum();  // a checkpoint without its checksum is refused by its reader
    } catch (const Error&) {
      return false;
    }
  };
  REQUIRE(accepted(good));
  int survivors = 0;
  for (size_t at = 0; at < good.size(); ++at) {
    std::vector<uint8_t> bad = good;
    bad[at] ^= 1 << (at % 8);
    if (accepted(bad)) ++survivors;
    if (at % 7 == 0 && accepted(std::span(good).first(at))) ++survivors;
  }
  CHECK(survivors == 0);
}

TEST_CASE("arrays without elements are none to write, and what was there stays") {
  const testing::TempFolder folder;
  write_safetensors(folder / "a.st", {{"a", Array(f32, {0, 3})}});
  CHECK_THROWS_WITH_AS(write_safetensors(folder / "a.st", {{"b", Array(f32, {2})}, {"c", Array()}}),
                       doctest::Contains("the array of tensor 'c' has no elements yet"), InputError);
  CHECK(read_safetensors(folder / "a.st").size() == 1);
}

TEST_CASE("hostile safetensors headers are refused with an error, whatever they say") {
  const auto refused = [](const std::vector<uint8_t>& bytes) {
    CHECK_THROWS_WITH_AS(SafeTensors(bytes, "hostile"), doctest::Contains("hostile: "), Error);
  };
  refused({});
  refused({1, 2, 3});
  refused({255, 255, 255, 255, 255, 255, 255, 255, '{', '}'});
  refused(with_header("[1]", 0));
  refused(with_header("{", 0));
  refused(with_header(std::string(100000, '['), 0));
  refused(with_header(R"({"a": 3})", 0));
  refused(with_header(R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 8]}})", 8));
  refused(with_header(R"({"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}})", 4));
  refused(with_header(R"({"a": {"dtype": "F32", "shape": [1.5], "data_offsets": [0, 4]}})", 4));
  refused(with_header(R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 0]}})", 4));
  refused(with_header(R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}})", 4));
  refused(with_header(R"({"a": {"dtype": "C64", "shape": [1], "data_offsets": [0, 8]}})", 8));
  refused(with_header(R"({"a": {"dtype": "F32", "shape": [4611686018427387904, 4], "data_offsets": [0, 0]}})",
                      0));
  refused(
      with_header(R"({"a": {"dtype": "F32", "shape": [18446744073709551615], "data_offsets": [0, 0]}})", 0));
  refused(with_header(R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}})", 9));
  refused(with_header(R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
                          "b": {"dtype": "F32", "shape": [1], "data_offsets": [2, 6]}})",
                      6));
  refused(
      with_header(R"({"a": {"dtype": "F32", "shape": [0, 99999999999999999], "data_offsets": [0, 0]}})", 0));
  refused(with_header(R"({"__metadata__": {"a": 1}})", 0));
  CHECK(SafeTensors(with_header("{}  ", 0), "plain").names().empty());
}

TEST_CASE("random damage to a file without checksum never crashes the reader") {
  testing::TempFolder folder;
  write_safetensors(folder / "a.safetensors", some_tensors());
  std::vector<uint8_t> base = read_file(folder / "a.safetensors");
  // Break the checksum's name, so that what lies behind it is reached.
  const std::string text(base.begin(), base.end());
  base[text.find("crc32c")] = 'x';
  RandomStream random(7, 0);
  for (int round = 0; round < 3000; ++round) {
    std::vector<uint8_t> bytes = base;
    for (uint32_t edits = 1 + random.below(6); edits; --edits)
      bytes[random.below(bytes.size())] = random.next() & 0xff;
    if (random.below(4) == 0) bytes.resize(random.below(bytes.size()));
    try {
      const SafeTensors file(bytes, "fuzzed");
      for (const auto& name : file.names()) file.tensor(name);
    } catch (const Error&) {
    }
  }
}
