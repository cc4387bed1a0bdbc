#include "data/formats/file_list.h"

#include "base/file.h"
#include "data/io/location.h"
#include "data/io/open_file.h"

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
    if (!is_elsewhere(name(index))) return Bytes(read_file(name(index)));
    const auto file = open_file(name(index));
    return file->read(0, file->size());
  }

 private:
  std::vector<std::string> names_;
};

}  // namespace

std::shared_ptr<const Dataset> file_list(std::vector<std::string> files, const std::string& path,
                                         const Column& content) {
  return std::make_shared<FileList>(std::move(files), path, content);
}

}  // namespace millrace::data
