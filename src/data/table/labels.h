// Classes of samples, whatever the samples are: which column says them, and numbers for them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/dataset.h>

namespace millrace::data {

/// Is a column called as those of classes are: label, cls, class or target, or as a tar has a text of that
/// name, label.txt?
bool names_class(std::string_view name);
/// The column of classes: one of numbers or texts that is called so, else the only one of whole numbers.
std::optional<size_t> find_label(const Dataset& dataset);
/// The same; InputError says why there is none, and which columns there are.
size_t label_column(const Dataset& dataset);

/// Does its name say that a column numbers rows ("id", "PassengerId", "row_no")? A rank among all rows has
/// such values, too, and is worth learning from.
bool names_rows(const std::string& name);

/// The data set with the values of that column as the numbers of classes, read once and kept; the column is
/// then its class_column(). Whole numbers from 0 on are classes as they are (of a list of numbers, the
/// first), texts are classes in alphabetical order. InputError says which sample has no class.
std::shared_ptr<const Dataset> numbered(std::shared_ptr<const Dataset> dataset, size_t column);
/// The same of its label_column(); every sample must also have a value in a column of this kind. InputError
/// says which has not.
std::shared_ptr<const Dataset> labelled(std::shared_ptr<const Dataset> dataset, ColumnKind content);

/// The classes of a data set that has a class_column(); of others there are none. The data set must stay.
class Labels {
 public:
  Labels() = default;
  explicit Labels(const Dataset& dataset);
  bool there() const { return dataset_ != nullptr; }
  /// Label i is names()[i].
  const std::vector<std::string>& names() const { return names_; }
  /// The class of a sample, an index into names(); -1 where there are none.
  int64_t operator[](int64_t index) const {
    return dataset_ ? std::get<int64_t>(dataset_->read(index, column_)) : -1;
  }

 private:
  const Dataset* dataset_ = nullptr;
  size_t column_ = 0;
  std::vector<std::string> names_;
};

/// The class of one sample in a column of classes as it is written: a whole number from 0 on, or a text.
/// InputError when there is none.
Value class_of(const Dataset& dataset, int64_t index, size_t column);

/// A column of numbers of all samples; InputError names the sample that has none.
std::vector<double> numbers_of(const Dataset& dataset, std::string_view column);

/// The place of the column of keys, __key__.
std::optional<size_t> key_column(const Dataset& dataset);
/// What names a sample within its data set, wherever that lies: its key, its path below the folder, its
/// number.
std::string key_of(const Dataset& dataset, int64_t index);

}  // namespace millrace::data
