#include "data/table/file_list.h"

#include "base/file.h"

namespace millrace::data {
namespace {

class FileList final : public Dataset {
 public:
  FileList(std::vector<std::string> files, const std::string& path, const Column& content)
      : Dataset(path), names_(std::move(files)) {
    columns_ = {{"__key__", ColumnKind::text}, content};
  }
  int64_t count() const override { return static_cast<int64_t>(names_.size()); }
  std::string name(int64_t index) const override { return names_.at(static_cast<size_t>(index)); }
  Value read(int64_t index, size_t column) const override {
    if (column == 0) return name(index);
    return Bytes(read_file(name(index)));
  }

 private:
  std::vector<std::string> names_;
};

class Slice final : public Dataset {
 public:
  Slice(std::shared_ptr<const Dataset> dataset, int64_t first, int64_t count)
      : Dataset(dataset->path()), dataset_(std::move(dataset)), first_(first), count_(count) {
    columns_ = dataset_->columns();
  }
  int64_t count() const override { return count_; }
  std::string name(int64_t index) const override { return dataset_->name(first_ + index); }
  bool has(int64_t index, size_t column) const override { return dataset_->has(first_ + index, column); }
  Value read(int64_t index, size_t column) const override { return dataset_->read(first_ + index, column); }
  bool read_run(int64_t first, int64_t count, std::span<const size_t> columns,
                std::vector<ColumnValues>& values) const override {
    return dataset_->read_run(first_ + first, count, columns, values);
  }
  void will_read(int64_t index) const override { dataset_->will_read(first_ + index); }

 private:
  std::shared_ptr<const Dataset> dataset_;
  int64_t first_, count_;
};

}  // namespace

std::shared_ptr<const Dataset> file_list(std::vector<std::string> files, const std::string& path,
                                         const Column& content) {
  return std::make_shared<FileList>(std::move(files), path, content);
}

std::shared_ptr<const Dataset> slice(std::shared_ptr<const Dataset> dataset, int64_t first, int64_t count) {
  return std::make_shared<Slice>(std::move(dataset), first, count);
}

}  // namespace millrace::data
