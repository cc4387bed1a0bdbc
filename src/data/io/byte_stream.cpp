#include "data/io/byte_stream.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/format.h"
#include "data/io/open_file.h"

extern char** environ;

namespace millrace::data {
namespace {

constexpr size_t kFirstPiece = 1 << 12, kPiece = 1 << 18;

/// Wakes a thread that waits for bytes.
class Wake {
 public:
  Wake() : event_(::eventfd(0, EFD_CLOEXEC)) {
    if (event_ < 0) fail<IoError>("no event can be made: {}", std::strerror(errno));
  }
  ~Wake() { ::close(event_); }
  Wake(const Wake&) = delete;
  Wake& operator=(const Wake&) = delete;
  void ring() const {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t put = ::write(event_, &one, sizeof one);
  }
  /// Waits until `file` has bytes or ends; StreamStopped when it was rung.
  void wait_for(int file) const {
    pollfd both[2] = {{file, POLLIN, 0}, {event_, POLLIN, 0}};
    while (::poll(both, 2, -1) < 0)
      if (errno != EINTR) fail<IoError>("waiting for data failed: {}", std::strerror(errno));
    if (both[1].revents) throw StreamStopped();
  }

 private:
  int event_;
};

size_t read_some(const Wake& wake, int file, std::span<uint8_t> out, const std::string& what) {
  while (true) {
    wake.wait_for(file);
    const ssize_t got = ::read(file, out.data(), out.size());
    if (got >= 0) return static_cast<size_t>(got);
    if (errno != EINTR && errno != EAGAIN)
      fail<IoError>("{}: cannot be read: {}", what, std::strerror(errno));
  }
}

/// A pipe whose ends no child inherits but by name.
struct Pipe {
  int read = -1, write = -1;
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) fail<IoError>("no pipe can be made: {}", std::strerror(errno));
    read = ends[0];
    write = ends[1];
  }
  ~Pipe() {
    close(read);
    close(write);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  static void close(int& end) {
    if (end >= 0) ::close(end);
    end = -1;
  }
};

/// Begins "sh -c SCRIPT sh ARGUMENT" in a process group of its own, with `file` as its file number `as`.
pid_t begin_shell(const std::string& script, const std::string& argument, int file, int as) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_adddup2(&actions, file, as);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  const char* const arguments[] = {"sh", "-c", script.c_str(), "sh", argument.c_str(), nullptr};
  pid_t process = 0;
  const int error =
      ::posix_spawn(&process, "/bin/sh", &actions, &attributes, const_cast<char* const*>(arguments), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (error != 0) fail<IoError>("{}: cannot be started: {}", script, std::strerror(error));
  return process;
}

int wait_for_end(pid_t process) {
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

/// A command and all that it begins, which ends with this process, however that ends: a second process waits
/// for the end of a pipe that only we hold open, and then ends the group.
class CommandStream final : public ByteStream {
 public:
  explicit CommandStream(const std::string& path) : path_(path) {
    process_ = begin_shell(path.substr(std::string_view("pipe:").size()), "", output_.write, STDOUT_FILENO);
    Pipe::close(output_.write);
    constexpr int kept = 9;  // the highest that every shell can name
    try {
      guard_ = begin_shell("exec >/dev/null 2>&1; read -r end <&9; kill -TERM \"-$1\"",
                           std::to_string(process_), lifeline_.read, kept);
    } catch (const IoError&) {
      end_group();
      throw;
    }
    Pipe::close(lifeline_.read);
  }
  ~CommandStream() override {
    dismiss_guard();
    Pipe::close(output_.read);
    if (process_ > 0) end_group();
  }

  size_t read(std::span<uint8_t> out) override {
    if (process_ <= 0) return 0;
    const size_t got = read_some(wake_, output_.read, out, path_);
    if (got == 0) finish();
    return got;
  }
  void stop() override { wake_.ring(); }

 private:
  void dismiss_guard() {
    if (guard_ <= 0) return;
    ::kill(guard_, SIGKILL);
    wait_for_end(guard_);
    guard_ = 0;
  }

  void end_group() {
    ::kill(-process_, SIGTERM);
    // A command that does not mind: it has half a second.
    for (int round = 0; round < 50; ++round) {
      if (::waitpid(process_, nullptr, WNOHANG) != 0) return;
      ::usleep(10'000);
    }
    ::kill(-process_, SIGKILL);
    wait_for_end(process_);
  }

  void finish() {
    dismiss_guard();  // before the number of the group can become another's
    const int status = wait_for_end(process_);
    process_ = 0;
    if (status != 0)
      fail<IoError>("{}: the command failed ({}); what it says stands above", path_,
                    WIFEXITED(status) ? fmt::format("exit status {}", WEXITSTATUS(status))
                                      : fmt::format("signal {}", WTERMSIG(status)));
  }

  std::string path_;
  Wake wake_;
  Pipe output_, lifeline_;
  pid_t process_ = 0, guard_ = 0;
};

class StandardInput final : public ByteStream {
 public:
  StandardInput() {
    if (::isatty(STDIN_FILENO))
      fail<InputError>("-: standard input is a terminal; give data: cat x.tar | millrace …");
  }
  size_t read(std::span<uint8_t> out) override {
    return read_some(wake_, STDIN_FILENO, out, "standard input");
  }
  /// Where it is a file ("< x.tar").
  bool seek(uint64_t offset) override {
    return ::lseek(STDIN_FILENO, static_cast<off_t>(offset), SEEK_SET) >= 0;
  }
  void stop() override { wake_.ring(); }

 private:
  Wake wake_;
};

class FileStream final : public ByteStream {
 public:
  explicit FileStream(std::shared_ptr<const RandomAccessFile> file) : file_(std::move(file)) {}
  size_t read(std::span<uint8_t> out) override {
    if (stopped_) throw StreamStopped();
    const size_t size = static_cast<size_t>(std::min<uint64_t>(out.size(), file_->size() - at_));
    if (size == 0) return 0;
    const Bytes bytes = file_->read(at_, size);
    std::memcpy(out.data(), bytes.data(), size);
    at_ += size;
    file_->will_read(at_, std::min<uint64_t>(file_->size() - at_, uint64_t{8} << 20));
    return size;
  }
  bool seek(uint64_t offset) override {
    if (offset > file_->size())
      fail<InputError>("{}: has {} bytes, byte {} is wanted; was the file changed?", file_->path(),
                       file_->size(), offset);
    at_ = offset;
    return true;
  }
  void stop() override { stopped_ = true; }

 private:
  std::shared_ptr<const RandomAccessFile> file_;
  uint64_t at_ = 0;
  std::atomic<bool> stopped_{false};
};

}  // namespace

std::unique_ptr<ByteStream> file_bytes(std::shared_ptr<const RandomAccessFile> file) {
  return std::make_unique<FileStream>(std::move(file));
}

std::unique_ptr<ByteStream> open_bytes(const std::string& path) {
  std::unique_ptr<ByteStream> bytes;
  if (path == "-")
    bytes = std::make_unique<StandardInput>();
  else if (path.starts_with("pipe:"))
    bytes = std::make_unique<CommandStream>(path);
  else
    bytes = file_bytes(open_file(path));
  return unpacked(path, std::move(bytes));
}

std::span<const uint8_t> StreamInput::peek(size_t size) {
  if (end_ - begin_ < size && begin_ > 0) {
    std::copy(buffer_.begin() + static_cast<ptrdiff_t>(begin_),
              buffer_.begin() + static_cast<ptrdiff_t>(end_), buffer_.begin());
    end_ -= begin_;
    begin_ = 0;
  }
  while (end_ - begin_ < size && !over_) {
    // Pieces are as large as all that came so far: little is made ready for short streams.
    const auto piece =
        static_cast<size_t>(std::clamp<uint64_t>(offset_ + end_ - begin_, kFirstPiece, kPiece));
    if (buffer_.size() - end_ < piece) buffer_.resize(std::max(2 * buffer_.size(), end_ + piece));
    const size_t got = bytes_->read(std::span(buffer_).subspan(end_));
    over_ = got == 0;
    end_ += got;
  }
  return std::span<const uint8_t>(buffer_).subspan(begin_, std::min(size, end_ - begin_));
}

void StreamInput::append(std::span<const uint8_t> bytes, std::vector<uint8_t>& out) const {
  // While it grows, it and its memory of before; and when it is cut to its size at the end (PartedStream).
  if (room_) room_(3 * (out.size() + bytes.size()));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

bool StreamInput::take(uint64_t size, std::vector<uint8_t>& out) {
  while (size > 0) {
    const auto some = peek(static_cast<size_t>(std::min<uint64_t>(size, kPiece)));
    if (some.empty()) return false;
    append(some, out);
    size -= some.size();
    skip(some.size());
  }
  return true;
}

bool StreamInput::seek(uint64_t offset) {
  if (!bytes_->seek(offset)) return false;
  begin_ = end_ = 0;
  offset_ = offset;
  over_ = false;
  return true;
}

}  // namespace millrace::data
