#include "base/file.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "base/format.h"

namespace millrace {
namespace fs = std::filesystem;

OpenFile::OpenFile(const fs::path& path) {
  // Without waiting: opening a pipe that has no writer would wait for ever.
  file = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) {
    const int error = errno;
    if (error == ENOENT) fail<IoError>("{}: no such file; check the path", path.string());
    fail<IoError>("{}: cannot be opened: {}", path.string(), std::strerror(error));
  }
  struct stat status {};
  if (::fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(file);
    fail<IoError>("{}: is {}, a file is wanted here", path.string(),
                  S_ISDIR(status.st_mode) ? "a folder" : "not a regular file");
  }
  size = static_cast<uint64_t>(status.st_size);
}

OpenFile::~OpenFile() { ::close(file); }

namespace {

template <typename Bytes>
Bytes read_all(const fs::path& path) {
  const OpenFile reader(path);
  Bytes bytes(reader.size, typename Bytes::value_type{});
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = ::read(reader.file, bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail<IoError>("{}: cannot be read: {}", path.string(), std::strerror(errno));
    if (got == 0) break;  // it shrank meanwhile
    done += static_cast<size_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

constexpr size_t buffer_bytes = 1 << 18;

}  // namespace

std::vector<uint8_t> read_file(const fs::path& path) { return read_all<std::vector<uint8_t>>(path); }
std::string read_text(const fs::path& path) { return read_all<std::string>(path); }

void fail_writing(const fs::path& path, std::string_view action, int error) {
  const bool full = error == ENOSPC || error == EDQUOT;
  fail<IoError>("{}: cannot {}: {}.", path.string(), action,
                full ? "disk full. Free some space or choose another folder" : std::strerror(error));
}

int open_nameless(const fs::path& given) {
  const fs::path folder = given.empty() ? fs::path(".") : given;
  int file = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file >= 0) return file;
  // Not every file system can do that.
  std::string name = (folder / "millrace-XXXXXX").string();
  file = ::mkostemp(name.data(), O_CLOEXEC);
  if (file < 0) fail_writing(folder, "create a temporary file in it", errno);
  ::unlink(name.c_str());
  return file;
}

namespace {

/// −1 where the file system cannot do that, or it could not be given a name later.
int open_unnamed(const fs::path& folder) {
  if (::access("/proc/self/fd", X_OK) != 0) return -1;
  return ::open(folder.empty() ? "." : folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
}

/// Where a chain of symbolic links ends, be there nothing yet; `path` itself when it is none.
fs::path end_of_links(const fs::path& path, std::error_code& error) {
  constexpr int most_links = 40;  // as the kernel has it
  fs::path at = path;
  for (int links = 0; fs::is_symlink(fs::symlink_status(at, error)); ++links) {
    if (links == most_links) error = std::make_error_code(std::errc::too_many_symbolic_link_levels);
    if (error) return at;
    at = at.parent_path() / fs::read_symlink(at, error);
  }
  if (error == std::errc::no_such_file_or_directory) error.clear();
  return at;
}

}  // namespace

/// Looks at what is there: what may be replaced, what is written to, and what is neither.
void AtomicFile::aim(fs::path path) {
  path_ = std::move(path);
  struct stat there {};
  const bool exists = ::stat(path_.c_str(), &there) == 0;
  stream_ = path_ == standard_output || (exists && (S_ISCHR(there.st_mode) || S_ISFIFO(there.st_mode)));
  if (exists && !stream_ && !S_ISREG(there.st_mode))
    fail<IoError>("{}: is {}, which is not replaced by a file; choose another name", path_.string(),
                  S_ISDIR(there.st_mode)    ? "a folder"
                  : S_ISSOCK(there.st_mode) ? "a socket"
                                            : "a disk");
  std::error_code error;
  target_ = stream_ ? path_ : end_of_links(path_, error);
  if (error) fail_with("write it", error.value());
  // /proc/self/fd/1 of a file that was deleted leads to a name that is not its own.
  if (exists && !stream_ && !fs::equivalent(path_, target_, error)) fail_with("follow the link", ENOENT);
}

void AtomicFile::rename(fs::path path) { aim(std::move(path)); }

void AtomicFile::open(unsigned mode) {
  if (stream_) {
    // To open a file behind standard output again would begin at its first byte.
    file_ = path_ == standard_output ? ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)
                                     : ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    if (file_ < 0) fail_with("open it", errno);
    return;
  }
  std::error_code error;
  if (target_.has_parent_path()) fs::create_directories(target_.parent_path(), error);
  if (error) fail_with("make the folder for it", error.value());
  file_ = open_unnamed(target_.parent_path());
  named_ = file_ < 0;
  if (named_) file_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file_ < 0) fail_with("create it", errno);
  if (::fchmod(file_, mode) != 0) {
    const int problem = errno;
    give_up();
    fail_with("set its permissions", problem);
  }
}

AtomicFile::AtomicFile(fs::path path, unsigned mode) {
  aim(std::move(path));
  // Process and counter keep two writers of one path apart.
  static std::atomic<unsigned> counter{0};
  temporary_ = target_;
  temporary_ += fmt::format(".tmp-{}-{}", ::getpid(), counter++);
  open(mode);
  buffer_.reserve(buffer_bytes);
}

AtomicFile::~AtomicFile() {
  if (file_ >= 0) give_up();
}

void AtomicFile::give_up() {
  ::close(std::exchange(file_, -1));
  if (named_) ::unlink(temporary_.c_str());
}

void AtomicFile::write(const void* data, size_t size) {
  const auto* bytes = static_cast<const uint8_t*>(data);
  size_ += size;
  while (size > 0) {
    const size_t part = std::min(size, buffer_bytes - buffer_.size());
    buffer_.insert(buffer_.end(), bytes, bytes + part);
    bytes += part;
    size -= part;
    if (buffer_.size() == buffer_bytes) flush();
  }
}

void AtomicFile::flush() {
  if (file_ < 0) fail<InternalError>("{}: written after commit", path_.string());
  size_t done = 0;
  while (done < buffer_.size()) {
    const ssize_t put = ::write(file_, buffer_.data() + done, buffer_.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail_with("write it", errno);
    done += static_cast<size_t>(put);
  }
  buffer_.clear();
}

void AtomicFile::commit() {
  flush();
  if (stream_) {
    if (::close(std::exchange(file_, -1)) != 0) fail_with("write it", errno);
    return;
  }
  if (::fsync(file_) != 0) fail_with("write it", errno);
  aim(path_);  // what came there meanwhile is not replaced unseen
  if (stream_) fail_with("put it in place", EEXIST);
  place();
  // The rename itself must survive a power cut; a folder that cannot be flushed is no reason to fail.
  const fs::path folder = target_.has_parent_path() ? target_.parent_path() : fs::path(".");
  if (const int handle = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); handle >= 0) {
    ::fsync(handle);
    ::close(handle);
  }
}

/// Gives the finished file its name.
void AtomicFile::place() {
  if (!named_) {
    const std::string self = fmt::format("/proc/self/fd/{}", file_);
    const auto link_as = [&](const fs::path& name) {
      return ::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
    };
    // What is there already can only be replaced by a name of its own, for a moment.
    const bool placed = link_as(target_);
    if (!placed && errno == EEXIST) {
      ::unlink(temporary_.c_str());
      named_ = link_as(temporary_);
    }
    if (!placed && !named_) fail_with("put it in place", errno);
  }
  if (::close(std::exchange(file_, -1)) != 0) {
    const int error = errno;
    if (named_) ::unlink(temporary_.c_str());
    fail_with("write it", error);
  }
  if (named_ && ::rename(temporary_.c_str(), target_.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary_.c_str());
    fail_with("put it in place", error);
  }
}

void AtomicFile::fail_with(const char* action, int error) const {
  try {
    fail_writing(path_, action, error);
  } catch (const IoError& failure) {
    std::error_code ignored;
    if (stream_ || !fs::exists(path_, ignored)) throw;
    fail<IoError>("{} The old file is unchanged.", failure.what());
  }
}

void remove_unfinished(const fs::path& folder, const std::function<bool(const std::string&)>& unfinished,
                       std::chrono::seconds since) {
  std::error_code error;
  std::vector<fs::path> left;
  const auto now = fs::file_time_type::clock::now();
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (!unfinished(at->path().filename().string())) continue;
    std::error_code gone;
    const auto written = at->last_write_time(gone);
    if (!gone && (since.count() == 0 || now - written > since)) left.push_back(at->path());
  }
  for (const fs::path& path : left) fs::remove_all(path, error);
}

void write_unflushed(const fs::path& path, std::span<const uint8_t> bytes) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (!file) fail_writing(path, "create it", errno);
  const bool written = bytes.empty() || std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  const int error = errno;
  if (std::fclose(file) != 0 || !written) fail_writing(path, "write it", written ? errno : error);
}

void append_lines(const fs::path& path, std::string_view lines, std::string_view action, bool flushed) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) fail_writing(path, action, errno);
  const off_t before = ::lseek(file, 0, SEEK_END);
  if (before >= 0) errno = ENOSPC;  // what a write that ends early means
  const bool written = before >= 0 &&
                       ::write(file, lines.data(), lines.size()) == static_cast<ssize_t>(lines.size()) &&
                       (!flushed || ::fsync(file) == 0);
  const int error = errno;
  const bool undone = written || before < 0 || ::ftruncate(file, before) == 0;
  ::close(file);
  if (!undone)
    fail<IoError>("{}: its last lines, from byte {} on, are not whole and cannot be removed: cut it there",
                  path.string(), before);
  if (!written) fail_writing(path, action, error);
}

void write_file(const fs::path& path, std::span<const uint8_t> bytes, unsigned mode) {
  AtomicFile file(path, mode);
  file.write(bytes.data(), bytes.size());
  file.commit();
}

void write_file(const fs::path& path, std::string_view text, unsigned mode) {
  AtomicFile file(path, mode);
  file.write(text);
  file.commit();
}

}  // namespace millrace
