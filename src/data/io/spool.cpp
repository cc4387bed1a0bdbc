// "pipe:COMMAND" and "-", standard input: what comes out is kept in a temporary file, so that it can be read
// in any order.
#include "data/io/spool.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/format.h"

namespace millrace::data {
namespace {

/// A file without a name.
class Temporary {
 public:
  Temporary() {
    const char* folder = std::getenv("TMPDIR");
    folder_ = folder && *folder ? folder : "/tmp";
    file_ = open_nameless(folder_);
  }
  ~Temporary() { ::close(file_); }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  /// All that can be read from `from`.
  void fill(int from, const std::string& what) {
    std::vector<uint8_t> buffer(1 << 20);
    while (true) {
      const ssize_t got = ::read(from, buffer.data(), buffer.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail<IoError>("{}: cannot be read: {}", what, std::strerror(errno));
      if (got == 0) return;
      for (ssize_t done = 0; done < got;) {
        const ssize_t put = ::write(file_, buffer.data() + done, static_cast<size_t>(got - done));
        if (put < 0 && errno != EINTR)
          fail_writing(folder_, fmt::format("cannot keep what {} gives", what), errno);
        if (put > 0) done += put;
      }
      size_ += static_cast<size_t>(got);
    }
  }

  Bytes map() const {
    if (size_ == 0) return {};
    void* memory = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file_, 0);
    if (memory == MAP_FAILED)
      fail<IoError>("{}: {} bytes cannot be mapped: {}", folder_, size_, std::strerror(errno));
    const size_t size = size_;
    std::shared_ptr<const void> owner(memory, [size](void* at) { ::munmap(at, size); });
    return {{static_cast<const uint8_t*>(memory), size}, std::move(owner)};
  }

 private:
  std::string folder_;
  int file_ = -1;
  size_t size_ = 0;
};

Bytes output_of(const std::string& path) {
  const std::string command = path.substr(std::string_view("pipe:").size());
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (!pipe) fail<IoError>("{}: cannot be started: {}", path, std::strerror(errno));
  Temporary file;
  try {
    file.fill(::fileno(pipe), path);
  } catch (...) {
    ::pclose(pipe);
    throw;
  }
  const int status = ::pclose(pipe);
  if (status != 0)
    fail<IoError>("{}: the command failed ({}); what it says stands above", path,
                  WIFEXITED(status) ? fmt::format("exit status {}", WEXITSTATUS(status))
                                    : fmt::format("signal {}", WTERMSIG(status)));
  return file.map();
}

}  // namespace

std::shared_ptr<const RandomAccessFile> spooled_file(const std::string& path) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const RandomAccessFile>> kept;
  const std::lock_guard lock(mutex);
  auto& file = kept[path];
  if (file) return file;
  if (path != "-") return file = memory_file(path, output_of(path));
  if (::isatty(STDIN_FILENO))
    fail<InputError>("-: standard input is a terminal; give data: cat x.tar | millrace …");
  Temporary temporary;
  temporary.fill(STDIN_FILENO, "standard input");
  return file = memory_file(path, temporary.map());
}

}  // namespace millrace::data
