// A tar by its index: a sample is a stretch of the file, whose headers are read when a member is wanted.
#include "base/format.h"
#include "data/formats/formats.h"
#include "data/formats/tar_dataset.h"
#include "data/formats/tar_members.h"
#include "data/table/indexed_samples.h"

namespace millrace::data {
namespace {

class IndexedTar final : public TarDataset {
 public:
  IndexedTar(const std::string& path, Files files, const std::vector<std::shared_ptr<const Index>>& indices)
      : TarDataset(path, std::move(files)), indexed_(indices) {
    for (const auto& index : indices)
      if (folder_fault_.empty()) folder_fault_ = index->class_fault();
    for (const Column& column : indices[0]->columns()) add_column(column.name, column.kind, what(column));
  }

  int64_t count() const override { return indexed_.count(); }
  Value read(int64_t index, size_t column) const override {
    // What the index has no value of may be there and damaged: the tar says.
    if (Value small = indexed_.small(index, column); !std::holds_alternative<std::monostate>(small))
      return small;
    return TarDataset::read(index, column);
  }
  bool has(int64_t index, size_t column) const override { return indexed_.has(index, column); }
  std::optional<SampleExtent> extent(int64_t index) const override { return indexed_.extent(index); }

 protected:
  std::string key(int64_t index) const override { return std::string(indexed_.key(index)); }
  size_t file_of(int64_t index) const override { return indexed_.place(index).first; }
  std::optional<Bytes> find(int64_t index, const TarColumn& column) const override {
    const SampleExtent at = indexed_.extent(index);
    const Bytes bytes = files_[at.file]->read(at.offset, at.size);
    const std::string_view sample = indexed_.key(index);
    std::optional<Bytes> found;
    for_each_tar_member(files_[at.file]->path(), bytes, [&](const TarMember& member) {
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
    if (column.name == "__key__") return {TarColumn::What::key};
    if (column.name == "label" && column.kind == ColumnKind::text) return {TarColumn::What::folder};
    if (column.name == "image" && column.kind == ColumnKind::picture) return {TarColumn::What::any_picture};
    auto [extension, part] = split_column(column.name);
    return {TarColumn::What::member, std::move(extension), std::move(part), 0};
  }
  static bool belongs(const TarMember& member, std::string_view sample, const TarColumn& column) {
    std::string_view key;
    std::string extension;
    return split_key(member.name, key, extension) && key == sample && extension == column.extension;
  }

  IndexedSamples indexed_;
};

}  // namespace

std::unique_ptr<Dataset> open_indexed_tars(const std::string& path, Files files,
                                           std::vector<std::shared_ptr<const Index>> indices) {
  return std::make_unique<IndexedTar>(path, std::move(files), indices);
}

}  // namespace millrace::data
