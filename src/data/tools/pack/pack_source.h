// A data set as pack sees it: a picture and its class, and what lies beside them; or columns alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <millrace/dataset.h>

#include "data/table/contents.h"
#include "data/table/labels.h"

namespace millrace::data {

/// Of a data set of pictures with a class_column() (labels.h) picture and class are apart from the other
/// columns; of all others every column is an extra one. Keys are never among these. The data set must stay.
class PackSource {
 public:
  explicit PackSource(const Dataset& set);

  const Dataset& set() const { return set_; }
  int64_t count() const { return set_.count(); }
  bool has_classes() const { return pictures_.has_value(); }
  /// Empty, and labels -1, without classes.
  const std::vector<std::string>& classes() const { return labels_.names(); }
  int64_t label(int64_t index) const { return labels_[index]; }
  /// Empty without classes.
  StoredPicture picture(int64_t index) const;

  const std::vector<Column>& extra_columns() const { return extra_columns_; }
  /// The value of a sample in extra_columns()[column]; nothing where that is its picture.
  Value extra(int64_t index, size_t column) const;

 private:
  const Dataset& set_;
  std::optional<Contents> pictures_;
  Labels labels_;
  std::vector<Column> extra_columns_;
  std::vector<size_t> extra_;  // their places in the data set
};

}  // namespace millrace::data
