// Values of one column of samples that follow each other, as plain arrays: for work on millions of them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/table/value.h"

namespace millrace::data {

/// One of the arrays has an entry for each sample, as the kind says; what it holds for a missing one means nothing.
struct ColumnValues {
  ColumnKind kind = ColumnKind::text;
  std::vector<uint8_t> present;  // 1 or 0; empty: all are
  std::vector<int64_t> integers;
  std::vector<double> reals;
  /// Texts, contents, and the elements of arrays (of rank 1, of type `element`), as long as `owners` live.
  std::vector<std::string_view> contents;
  DType element = f32;
  std::vector<std::shared_ptr<const void>> owners;

  bool has(size_t i) const { return present.empty() || present[i]; }
  size_t size() const {
    return kind == ColumnKind::integer ? integers.size()
           : kind == ColumnKind::real  ? reals.size()
                                       : contents.size();
  }
};

/// Value i, i < size(); contents share the memory of `values`.
Value value_at(const std::shared_ptr<const ColumnValues>& values, size_t i);

/// A number as a category is called: "7", "0.5".
std::string category_text(const ColumnValues& values, size_t i);
/// Without these characters at both ends.
std::string_view trimmed_text(std::string_view text, std::string_view characters);

}  // namespace millrace::data
