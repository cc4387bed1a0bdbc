// Hostile files with columns: opened, then every value read and every sample verified.
#pragma once

#include <algorithm>
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
    read_samples(*data::formats().at(format).open(name, {file}));
  });
}

}  // namespace millrace::fuzz
