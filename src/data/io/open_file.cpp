#include "data/io/open_file.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/format.h"
#include "base/mapped_file.h"
#include "data/io/location.h"
#include "data/io/remote_cache.h"
#include "data/io/remote_file.h"
#include "data/io/remote_object.h"
#include "data/io/temporary_file.h"

namespace millrace::data {
namespace {

/// A mapped file, which bytes of it keep. Threads have counts of their own of who keeps it: one that all
/// change for every sample goes from CPU to CPU, and what each wrote before waits for it.
class LocalFile final : public RandomAccessFile {
 public:
  explicit LocalFile(const std::string& path) : RandomAccessFile(path) {
    const auto file = std::make_shared<const MappedFile>(path);
    for (auto& keeper : keepers_) keeper = std::make_shared<const Keeper>(Keeper{file});
  }

  uint64_t size() const override { return bytes().size(); }
  int64_t version() const override {
    struct stat status {};
    if (::stat(path().c_str(), &status) != 0) return 0;
    return static_cast<int64_t>(status.st_mtim.tv_sec) * 1'000'000'000 + status.st_mtim.tv_nsec;
  }
  Bytes read(uint64_t offset, uint64_t size) const override {
    require_range(offset, size);
    require_mapped_files();
    return {bytes().subspan(offset, size), keepers_[thread_number() % keepers_.size()]};
  }

 private:
  struct alignas(128) Keeper {
    std::shared_ptr<const MappedFile> file;
  };

  std::span<const uint8_t> bytes() const { return keepers_[0]->file->bytes(); }
  static size_t thread_number() {
    static std::atomic<size_t> threads{0};
    thread_local const size_t number = threads++;
    return number;
  }

  std::array<std::shared_ptr<const Keeper>, 8> keepers_;
};

Bytes output_of(const std::string& path) {
  TemporaryFile file(path);
  const std::string command = path.substr(std::string_view("pipe:").size());
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (!pipe) fail<IoError>("{}: cannot be started: {}", path, std::strerror(errno));
  try {
    file.fill(::fileno(pipe));
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

/// All that the command (run by sh) or standard input gives, kept so that it can be read in any order.
std::shared_ptr<const RandomAccessFile> spooled_file(const std::string& path) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const RandomAccessFile>> kept;
  const std::lock_guard lock(mutex);
  auto& file = kept[path];
  if (file) return file;
  if (path != "-") return file = memory_file(path, output_of(path));
  if (::isatty(STDIN_FILENO))
    fail<InputError>("-: standard input is a terminal; give data: cat x.tar | millrace …");
  TemporaryFile temporary("standard input");
  temporary.fill(STDIN_FILENO);
  return file = memory_file(path, temporary.map());
}

}  // namespace

std::shared_ptr<const RandomAccessFile> open_file(const std::string& path) {
  if (is_piped(path)) return spooled_file(path);
  if (is_remote(path)) {
    std::shared_ptr<const RemoteObject> object = path.starts_with("s3://") ? open_s3(path)
                                                 : is_hdfs(path)           ? open_webhdfs(path)
                                                                           : open_http(path);
    return std::make_shared<RemoteFile>(std::move(object), RemoteCache::global());
  }
  return std::make_shared<LocalFile>(path);
}

std::shared_ptr<const RandomAccessFile> open_beside(const std::string& path) {
  std::error_code ignored;
  if (!is_remote(path)) return std::filesystem::is_regular_file(path, ignored) ? open_file(path) : nullptr;
  try {
    return open_file(path);
  } catch (const RemoteMissing&) {
    return nullptr;
  }
}

}  // namespace millrace::data
