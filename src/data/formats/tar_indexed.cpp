// A tar by its index: a sample is a stretch of the file, whose headers are read when a member is wanted.
#include <algorithm>

#include "base/format.h"
#include "data/formats/formats.h"
#include "data/formats/tar_dataset.h"
#include "data/formats/tar_members.h"
#include "data/table/index.h"

namespace millrace::data {
namespace {

class IndexedTar final : public TarDataset {
 public:
  IndexedTar(const std::string& path, std::vector<std::shared_ptr<const RandomAccessFile>> files,
             std::vector<std::shared_ptr<const Index>> indices)
      : TarDataset(path, std::move(files)), indices_(std::move(indices)) {
    for (const auto& index : indices_) {
      ends_.push_back((ends_.empty() ? 0 : ends_.back()) + index->count());
      if (folder_fault_.empty()) folder_fault_ = index->class_fault();
    }
    for (const Column& column : indices_[0]->columns()) {
      small_.emplace_back();
      for (const auto& index : indices_) small_.back().push_back(index->small(column.name));
      if (std::find(small_.back().begin(), small_.back().end(), nullptr) != small_.back().end())
        small_.back().clear();
      add_column(column.name, column.kind, what(column));
    }
  }

  int64_t count() const override { return ends_.back(); }
  Value read(int64_t index, size_t column) const override {
    // What the index has no value of may be there and damaged: the tar says.
    if (!small_.at(column).empty()) {
      const auto [file, at] = place(index);
      if (Value value = indices_[file]->value(*small_[column][file], at);
          !std::holds_alternative<std::monostate>(value))
        return value;
    }
    return TarDataset::read(index, column);
  }
  bool has(int64_t index, size_t column) const override {
    const auto [file, at] = place(index);
    return indices_[file]->has(at, column);
  }
  std::optional<SampleExtent> extent(int64_t index) const override {
    const auto [file, at] = place(index);
    return SampleExtent{file, indices_[file]->offset(at), indices_[file]->size(at)};
  }

 protected:
  std::string key(int64_t index) const override {
    const auto [file, at] = place(index);
    return std::string(indices_[file]->key(at));
  }
  size_t file_of(int64_t index) const override { return place(index).first; }
  std::optional<Bytes> find(int64_t index, const TarColumn& column) const override {
    const auto [file, at] = place(index);
    const Bytes bytes = files_[file]->read(indices_[file]->offset(at), indices_[file]->size(at));
    const std::string_view sample = indices_[file]->key(at);
    std::optional<Bytes> found;
    for_each_tar_member(files_[file]->path(), bytes.view(), 0, bytes.size(), [&](const TarMember& member) {
      const bool wanted =
          member.regular && (column.what == TarColumn::What::any_picture ? member.name.ends_with(sample)
                                                                         : belongs(member, sample, column));
      if (wanted) found = bytes.part(member.offset, member.size);
      return !wanted;
    });
    return found;
  }

 private:
  static TarColumn what(const Column& column) {
    if (column.name == "__key__") return {TarColumn::What::key, "", "", 0};
    if (column.name == "label" && column.kind == ColumnKind::text)
      return {TarColumn::What::folder, "", "", 0};
    if (column.name == "image" && column.kind == ColumnKind::picture)
      return {TarColumn::What::any_picture, "", "", 0};
    auto [extension, part] = split_column(column.name);
    return {TarColumn::What::member, std::move(extension), std::move(part), 0};
  }
  static bool belongs(const TarMember& member, std::string_view sample, const TarColumn& column) {
    std::string_view key;
    std::string extension;
    return split_key(member.name, key, extension) && key == sample && extension == column.extension;
  }

  std::pair<size_t, int64_t> place(int64_t index) const {
    if (ends_.size() == 1) return {0, index};
    const auto file =
        static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), index) - ends_.begin());
    return {file, index - (file == 0 ? 0 : ends_[file - 1])};
  }

  std::vector<std::shared_ptr<const Index>> indices_;
  std::vector<int64_t> ends_;
  std::vector<std::vector<const Index::Small*>>
      small_;  // of each column, in each file; empty when it is not small
};

}  // namespace

std::unique_ptr<Dataset> open_indexed_tars(const std::string& path,
                                           std::vector<std::shared_ptr<const RandomAccessFile>> files,
                                           std::vector<std::shared_ptr<const Index>> indices) {
  return std::make_unique<IndexedTar>(path, std::move(files), std::move(indices));
}

}  // namespace millrace::data
