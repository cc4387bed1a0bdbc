// Hostile files with columns: opened, then every value read and every sample verified.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <millrace/dataset.h>
#include <millrace/file.h>

#include "data/formats/formats.h"
#include "fuzz/fuzz.h"

namespace millrace::fuzz {

inline void read_samples(const data::Dataset& dataset) {
  // A lying count must not keep the fuzzer busy.
  for (int64_t i = 0; i < std::min<int64_t>(dataset.count(), 100); ++i) {
    refuse_or_take([&] { dataset.verify(i); });
    (void)dataset.name(i);
    for (size_t c = 0; c < dataset.columns().size(); ++c)
      refuse_or_take([&] { (void)data::value_text(dataset.read(i, c), dataset.columns()[c].kind); });
  }
}

/// The bytes as the only file of a data set.
inline void read_file(const char* format, const char* name, std::vector<uint8_t> bytes) {
  const auto file = data::memory_file(name, data::Bytes(std::move(bytes)));
  refuse_or_take([&] {
    (void)data::format_of(*file);
    read_samples(*data::formats().at(format).open(name, {file}, {}));
  });
}

/// The first rows of each column, value by value and in one run: both must be the same, or refused.
inline void read_both_ways(const data::Dataset& dataset) {
  const int64_t rows = std::min<int64_t>(dataset.count(), 50);
  for (size_t c = 0; c < std::min<size_t>(dataset.columns().size(), 20); ++c)
    refuse_or_take([&] {
      std::vector<data::ColumnValues> values;
      if (!dataset.read_run(0, rows, std::span(&c, 1), values)) std::abort();
      const auto shared = std::make_shared<const data::ColumnValues>(values[0]);
      const auto kind = dataset.columns()[c].kind;
      for (int64_t i = 0; i < rows; ++i)
        if (data::value_text(data::value_at(shared, static_cast<size_t>(i)), kind, 1000) !=
            data::value_text(dataset.read(i, c), kind, 1000))
          std::abort();
    });
}

/// The bytes as the only file of a table that Arrow reads.
inline void read_table(const char* format, const char* name, std::vector<uint8_t> bytes) {
  const auto file = data::memory_file(name, data::Bytes(std::move(bytes)));
  refuse_or_take([&] {
    (void)data::format_of(*file);
    const auto dataset = data::formats().at(format).open(name, {file}, {});
    read_both_ways(*dataset);
    dataset->verify(dataset->count() - 1);
  });
}

/// Arrow takes memory where the sanitizer sees it.
inline int watch_arrow() { return setenv("ARROW_DEFAULT_MEMORY_POOL", "system", 1); }

}  // namespace millrace::fuzz
