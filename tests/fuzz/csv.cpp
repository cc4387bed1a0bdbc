// Hostile CSV: what opens reads the same value by value as in one run, or both say why not. The first byte
// chooses whether there is a line of names.
#include <optional>

#include <millrace/file.h>

#include "data/formats/formats.h"
#include "fuzz/dataset.h"

using namespace millrace;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto& format = data::formats().at("csv");
  const auto file = data::memory_file("input.csv", data::Bytes(std::vector<uint8_t>(data + 1, data + size)));
  fuzz::refuse_or_take([&] {
    (void)data::format_of(*file);
    data::OpenOptions options;
    if (data[0] % 3 > 0) options.header = data[0] % 3 == 1;
    const auto dataset = format.open("input.csv", {file}, options);
    fuzz::read_samples(*dataset);
    fuzz::read_both_ways(*dataset);
  });
  return 0;
}
