#include "data/random_access_file.h"

#include "base/file.h"
#include "base/format.h"

namespace millrace::data {
namespace {

class LocalFile final : public RandomAccessFile {
 public:
  explicit LocalFile(const std::string& path)
      : RandomAccessFile(path), file_(std::make_shared<const MappedFile>(path)) {}

  uint64_t size() const override { return file_->bytes().size(); }
  Bytes read(uint64_t offset, uint64_t size) const override {
    require_range(offset, size);
    return {file_->bytes().subspan(offset, size), file_};
  }

 private:
  std::shared_ptr<const MappedFile> file_;
};

}  // namespace

void RandomAccessFile::require_range(uint64_t offset, uint64_t size) const {
  const uint64_t all = this->size();
  if (offset > all || size > all - offset)
    fail<InputError>("{}: truncated: bytes {} to {} are wanted, the file has {}; copy it again", path_,
                     offset, offset + size, all);
}

std::shared_ptr<const RandomAccessFile> open_file(const std::string& path) {
  return std::make_shared<LocalFile>(path);
}

}  // namespace millrace::data
