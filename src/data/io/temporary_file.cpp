#include "data/io/temporary_file.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#include "base/file.h"
#include "base/format.h"

namespace millrace::data {

TemporaryFile::TemporaryFile() {
  const char* folder = std::getenv("TMPDIR");
  folder_ = folder && *folder ? folder : "/tmp";
  file_ = open_nameless(folder_);
}

TemporaryFile::~TemporaryFile() { ::close(file_); }

void TemporaryFile::fill(int from, const std::string& what) {
  std::vector<uint8_t> buffer(1 << 20);
  while (true) {
    const ssize_t got = ::read(from, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail<IoError>("{}: cannot be read: {}", what, std::strerror(errno));
    if (got == 0) return;
    add(std::span(buffer).first(static_cast<size_t>(got)), what);
  }
}

void TemporaryFile::add(std::span<const uint8_t> bytes, const std::string& what) {
  size_ += bytes.size();
  while (!bytes.empty()) {
    const ssize_t put = ::write(file_, bytes.data(), bytes.size());
    if (put < 0 && errno != EINTR) fail_writing(folder_, fmt::format("keep what {} gives", what), errno);
    if (put > 0) bytes = bytes.subspan(static_cast<size_t>(put));
  }
}

Bytes TemporaryFile::map() const {
  if (size_ == 0) return {};
  void* memory = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file_, 0);
  if (memory == MAP_FAILED)
    fail<IoError>("{}: {} bytes cannot be mapped: {}", folder_, size_, std::strerror(errno));
  const size_t size = size_;
  std::shared_ptr<const void> owner(memory, [size](void* at) { ::munmap(at, size); });
  return {{static_cast<const uint8_t*>(memory), size}, std::move(owner)};
}

}  // namespace millrace::data
