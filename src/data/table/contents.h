// What samples hold of one kind, whichever column it lies in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <millrace/dataset.h>

#include "data/codecs/pictures/stored_picture.h"

namespace millrace::data {

/// The columns of one kind: a sample's content is the first of them that it has (a WebDataset may have .jpg
/// here and .ppm there). The data set must stay.
class Contents {
 public:
  /// `column`: this one instead; "": all of the kind. InputError when there is no such column, naming those
  /// that there are.
  Contents(const Dataset& dataset, ColumnKind kind, const std::string& column = "");
  /// Has a data set a column of this kind?
  static bool in(const Dataset& dataset, ColumnKind kind);

  const std::vector<size_t>& columns() const { return columns_; }
  /// Where a sample has its content.
  std::optional<size_t> column(int64_t index) const;
  /// As Dataset::read(); nothing where a sample has no content.
  Value read(int64_t index) const;

 private:
  const Dataset* dataset_;
  std::vector<size_t> columns_;
};

/// A value of a column of pictures; empty where there is none. It shares the value's memory.
StoredPicture stored_picture(const Value& value);

/// "jpg (picture), cls (integer)"
std::string columns_text(const Dataset& dataset);
/// "pictures"
const char* kind_plural(ColumnKind kind);

}  // namespace millrace::data
