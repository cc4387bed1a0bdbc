// The samples of a data set by the indices of its files: what formats that open by an index have in common.
#pragma once

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/contains.h"
#include "data/table/index.h"

namespace millrace::data {

/// All members may be called from many threads at once.
class IndexedSamples {
 public:
  IndexedSamples() = default;
  /// One located index a file, all of the same columns.
  explicit IndexedSamples(std::vector<std::shared_ptr<const Index>> indices) : indices_(std::move(indices)) {
    for (const auto& index : indices_) ends_.push_back(count() + index->count());
    for (const Column& column : indices_.empty() ? std::vector<Column>() : indices_[0]->columns()) {
      small_.emplace_back();
      for (const auto& index : indices_) small_.back().push_back(index->small(column.name));
      if (contains(small_.back(), nullptr)) small_.back().clear();
    }
  }

  bool empty() const { return indices_.empty(); }
  int64_t count() const { return ends_.empty() ? 0 : ends_.back(); }
  /// The file of a sample, and its place among those of the file.
  std::pair<size_t, int64_t> place(int64_t index) const {
    if (ends_.size() == 1) return {0, index};
    const auto file =
        static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), index) - ends_.begin());
    return {file, index - (file == 0 ? 0 : ends_.at(file - 1))};
  }
  SampleExtent extent(int64_t index) const {
    const auto [file, at] = place(index);
    return {file, indices_.at(file)->offset(at), indices_[file]->size(at)};
  }
  std::string_view key(int64_t index) const {
    const auto [file, at] = place(index);
    return indices_.at(file)->key(at);
  }
  bool has(int64_t index, size_t column) const {
    const auto [file, at] = place(index);
    return indices_.at(file)->has(at, column);
  }
  /// The value of a small column; none where the index has none: the sample may still have one, perhaps
  /// damaged.
  Value small(int64_t index, size_t column) const {
    if (small_.at(column).empty()) return {};
    const auto [file, at] = place(index);
    return indices_.at(file)->value(*small_[column][file], at);
  }

 private:
  std::vector<std::shared_ptr<const Index>> indices_;
  std::vector<int64_t> ends_;
  std::vector<std::vector<const Index::Small*>>
      small_;  // of each column in each file; empty: it is not small
};

}  // namespace millrace::data
