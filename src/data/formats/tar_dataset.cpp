#include "data/formats/tar_dataset.h"

#include "base/format.h"
#include "data/formats/shard_index.h"

namespace millrace::data {
TarDataset::TarDataset(const std::string& path, Files files) : Dataset(path), files_(std::move(files)) {}

void TarDataset::add_column(std::string name, ColumnKind kind, TarColumn column) {
  columns_.push_back({std::move(name), kind});
  details_.push_back(std::move(column));
  if (details_.back().extension == "cls") find_classes();
}

void TarDataset::find_classes() {
  const std::string& shard = files_.front()->path();
  const std::string sidecar = shard_index_path(shard).string();
  try {
    if (auto index = read_shard_index(sidecar))
      classes_ = std::move(index->classes);
    else
      note(fmt::format("{}: the classes have no names but their numbers: {}", shard,
                       sidecar.empty()
                           ? "names stand in NAME.json beside shards called NAME-000000.tar, as millrace "
                             "pack writes them"
                           : fmt::format("there is no {} beside the shards, as millrace pack writes it",
                                         sidecar.substr(sidecar.rfind('/') + 1))));
  } catch (const InputError& error) {
    classes_fault_ = error.what();  // of no matter to who asks for no classes
  }
}

std::string TarDataset::member_name(int64_t index, const TarColumn& column) const {
  const std::string& path = files_[file_of(index)]->path();
  if (column.what == TarColumn::What::member)
    return fmt::format("{}: {}.{}", path, key(index), column.extension);
  return fmt::format("{}: {}", path, key(index));
}

std::string TarDataset::name(int64_t index) const {
  const std::string at = fmt::format("{}:{}", files_.at(file_of(index))->path(), key(index));
  for (size_t c = 0; c < columns_.size(); ++c)
    if (columns_[c].kind == ColumnKind::picture && details_[c].what == TarColumn::What::member &&
        has(index, c))
      return fmt::format("{}.{}", at, details_[c].extension);
  return at;
}

bool TarDataset::has(int64_t index, size_t column) const {
  const TarColumn& what = details_.at(column);
  if (what.what == TarColumn::What::key) return true;
  if (what.what == TarColumn::What::folder) return !split_path(key(index)).first.empty();
  return find(index, what).has_value();
}

Value TarDataset::read(int64_t index, size_t column) const {
  const TarColumn& what = details_.at(column);
  if (what.what == TarColumn::What::key) return key(index);
  if (what.what == TarColumn::What::folder) {
    const std::string whole = key(index);
    const std::string_view folder = split_path(split_path(whole).first).second;
    return folder.empty() ? Value() : Value(std::string(folder));
  }
  const std::optional<Bytes> content = find(index, what);
  if (!content) return {};
  if (what.what == TarColumn::What::any_picture) return *content;
  try {
    return decode_member(what.extension, what.part, *content, columns_[column].kind);
  } catch (const InputError& error) {
    fail<InputError>("{} {}", member_name(index, what), error.what());
  }
}

std::vector<std::string> TarDataset::class_names(size_t column) const {
  if (details_.at(column).what == TarColumn::What::folder) {
    if (!folder_fault_.empty()) throw InputError(folder_fault_);
    return {};
  }
  if (details_[column].extension != "cls") return {};
  if (!classes_fault_.empty()) throw InputError(classes_fault_);
  return classes_;
}

}  // namespace millrace::data
