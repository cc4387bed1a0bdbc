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
namespace {

std::filesystem::path temporary_folder() {
  const char* folder = std::getenv("TMPDIR");
  return folder && *folder ? folder : "/tmp";
}

}  // namespace

TemporaryFile::TemporaryFile(const std::string& of) : TemporaryFile(of, temporary_folder()) {}

TemporaryFile::TemporaryFile(const std::string& of, const std::filesystem::path& folder)
    : of_(of), folder_(folder), file_(::fdopen(open_nameless(folder), "w+b")) {}

TemporaryFile TemporaryFile::beside(const std::string& path) {
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) folder = ".";
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  return {path, folder};
}

void TemporaryFile::fill(int from) {
  std::vector<uint8_t> buffer(1 << 20);
  while (true) {
    const ssize_t got = ::read(from, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail<IoError>("{}: cannot be read: {}", of_, std::strerror(errno));
    if (got == 0) return;
    add(buffer.data(), static_cast<size_t>(got));
  }
}

void TemporaryFile::add(const void* data, size_t size) {
  size_ += size;
  if (size > 0 && std::fwrite(data, 1, size, file_.get()) != size)
    fail_writing(folder_, fmt::format("keep the data of {}", of_), errno);
}

Bytes TemporaryFile::map() {
  if (std::fflush(file_.get()) != 0) fail_writing(folder_, fmt::format("keep the data of {}", of_), errno);
  if (size_ == 0) return {};
  void* memory = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, ::fileno(file_.get()), 0);
  if (memory == MAP_FAILED)
    fail<IoError>("{}: {} bytes cannot be mapped: {}", folder_.string(), size_, std::strerror(errno));
  const size_t size = size_;
  std::shared_ptr<const void> owner(memory, [size](void* at) { ::munmap(at, size); });
  return {{static_cast<const uint8_t*>(memory), size}, std::move(owner)};
}

}  // namespace millrace::data
