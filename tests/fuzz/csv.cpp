// Hostile CSV: what opens reads the same value by value as in one run, or both say why not. The first byte chooses whether
// there is a line of names.
#include <cstdlib>
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
    const auto dataset = data[0] % 3 == 0 ? format.open("input.csv", {file})
                                          : format.open_known("input.csv", {file}, data[0] % 3 == 1, {});
    fuzz::read_samples(*dataset);
    std::vector<size_t> columns(std::min<size_t>(dataset->columns().size(), 20));
    for (size_t c = 0; c < columns.size(); ++c) columns[c] = c;
    std::vector<data::ColumnValues> values;
    const int64_t rows = std::min<int64_t>(dataset->count(), 50);
    if (!dataset->read_run(0, rows, columns, values)) std::abort();
    for (size_t c = 0; c < columns.size(); ++c) {
      const auto shared = std::make_shared<const data::ColumnValues>(values[c]);
      const auto kind = dataset->columns()[c].kind;
      for (int64_t i = 0; i < rows; ++i)
        if (data::value_text(data::value_at(shared, static_cast<size_t>(i)), kind, 1000) !=
            data::value_text(dataset->read(i, c), kind, 1000))
          std::abort();
    }
  });
  return 0;
}
