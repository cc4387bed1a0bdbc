#include <millrace/file.h>

#include "base/format.h"

namespace millrace::data {
namespace {

class MemoryFile final : public RandomAccessFile {
 public:
  MemoryFile(const std::string& path, Bytes bytes, int64_t version)
      : RandomAccessFile(path), bytes_(std::move(bytes)), version_(version) {}

  uint64_t size() const override { return bytes_.size(); }
  int64_t version() const override { return version_; }
  Bytes read(uint64_t offset, uint64_t size) const override {
    require_range(offset, size);
    return bytes_.part(offset, size);
  }

 private:
  Bytes bytes_;
  int64_t version_;
};

}  // namespace

void RandomAccessFile::require_range(uint64_t offset, uint64_t size) const {
  const uint64_t all = this->size();
  if (offset > all || size > all - offset)
    fail<InputError>("{}: truncated: bytes {} to {} are wanted, the file has {}; copy it again", path_,
                     offset, offset + size, all);
}

std::shared_ptr<const RandomAccessFile> memory_file(const std::string& path, Bytes bytes, int64_t version) {
  return std::make_shared<MemoryFile>(path, std::move(bytes), version);
}

}  // namespace millrace::data
