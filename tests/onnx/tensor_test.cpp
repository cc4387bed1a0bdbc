#include <cstring>
#include <doctest/doctest.h>
#include <filesystem>
#include <string>
#include <vector>

#include <millrace/error.h>

#include "base/file.h"
#include "onnx/external_files.h"
#include "onnx/model.h"
#include "support/temp_folder.h"

using namespace millrace;

namespace {

constexpr int64_t kExternalNumbers = 2048;

/// A file of f32 0, 1, 2 … behind so many bytes.
std::string external_file(size_t before) {
  std::vector<float> numbers(kExternalNumbers);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  std::string bytes(before, '\0');
  bytes.append(reinterpret_cast<const char*>(numbers.data()), 4 * numbers.size());
  return bytes;
}

onnx::TensorProto external_tensor(int64_t count, int64_t offset) {
  onnx::TensorProto tensor;
  tensor.name = "w";
  tensor.data_type = 1;
  tensor.dims = {count};
  tensor.external = {{"location", "w.data"}, {"offset", std::to_string(offset)}};
  return tensor;
}

bool lies_in(const Array& array, const MappedFile& file) {
  const auto *const at = static_cast<const uint8_t*>(array.data()), *const begin = file.bytes().data();
  return at >= begin && at + array.bytes() <= begin + file.bytes().size();
}

}  // namespace

TEST_CASE("large external data whose elements are aligned is not copied where that is asked for") {
  testing::TempFolder folder;
  for (const size_t before : {size_t{0}, size_t{4}, size_t{2}}) {
    CAPTURE(before);
    write_file(folder / "w.data", external_file(before));
    const auto offset = static_cast<int64_t>(before);
    onnx::ExternalFiles files;
    const auto file = files.open(folder / "w.data");
    const Array copied = onnx::array_of(external_tensor(kExternalNumbers, offset), folder.path()),
                mapped = onnx::array_of(external_tensor(kExternalNumbers, offset), folder.path(), &files),
                small = onnx::array_of(external_tensor(8, offset), folder.path(), &files);
    CHECK(copied.at(2047) == 2047);
    CHECK(mapped.identical(copied));
    CHECK(small.at(7) == 7);
    CHECK_FALSE(lies_in(copied, *file));
    CHECK(lies_in(mapped, *file) == (before != 2));
    CHECK_FALSE(lies_in(small, *file));
  }
}

TEST_CASE("an array in an external file outlives whoever opened that, and the file is watched") {
  testing::TempFolder folder;
  write_file(folder / "w.data", external_file(0));
  Array array;
  {
    onnx::ExternalFiles files;
    array = onnx::array_of(external_tensor(kExternalNumbers, 0), folder.path(), &files);
    CHECK_NOTHROW(files.require_unchanged());
    std::filesystem::resize_file(folder / "w.data", 4096);
    CHECK_THROWS_WITH_AS(files.require_unchanged(), doctest::Contains("w.data: "), IoError);
  }
  CHECK(array.at(1000) == 1000);
}

TEST_CASE("external data that is not whole, or lies elsewhere, is refused") {
  testing::TempFolder folder;
  write_file(folder / "w.data", external_file(0));
  onnx::ExternalFiles files;
  for (onnx::ExternalFiles* const each : {static_cast<onnx::ExternalFiles*>(nullptr), &files}) {
    CHECK_THROWS_WITH_AS((void)onnx::array_of(external_tensor(kExternalNumbers, 64), folder.path(), each),
                         doctest::Contains("is the file whole?"), InputError);
    CHECK_THROWS_WITH_AS((void)onnx::array_of(external_tensor(kExternalNumbers, -64), folder.path(), each),
                         doctest::Contains("is the file whole?"), InputError);
    onnx::TensorProto outside = external_tensor(kExternalNumbers, 0);
    outside.external["location"] = "../w.data";
    CHECK_THROWS_WITH_AS((void)onnx::array_of(outside, folder.path(), each),
                         doctest::Contains("outside of the model's folder"), InputError);
  }
}
