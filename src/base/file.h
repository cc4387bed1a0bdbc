// Whole files: reading, and writing so that a reader sees the old content or the new, never half.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

/// A file open for reading, closed at the end of the scope. IoError when it is missing, a folder or
/// unreadable.
struct OpenFile {
  int file = -1;
  uint64_t size = 0;

  explicit OpenFile(const std::filesystem::path& path);
  ~OpenFile();
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
};

/// The whole file; IoError when it is missing, a folder or unreadable.
std::vector<uint8_t> read_file(const std::filesystem::path& path);
std::string read_text(const std::filesystem::path& path);

/// Opens a file without a name in a folder ("": the current one), to read and write: nothing of it is left
/// when the process ends, however it ends. IoError.
int open_nameless(const std::filesystem::path& folder);

/// Throws IoError for a file that could not be written: `error` is an errno, a full disk is named as such.
[[noreturn]] void fail_writing(const std::filesystem::path& path, std::string_view action, int error);

/// What an output given as "-" is called.
inline constexpr const char* standard_output = "/dev/stdout";

/// Replaces a file in one step: content goes to a temporary file in its folder, which is flushed to the disk
/// and takes its name by commit(). Without commit() the old file stays. The temporary file has no name where
/// the file system can do that, so that nothing is left of it however the process ends; else (NFS) it is
/// removed by an exception on the way, and a killed process leaves it. All errors are IoError; a full disk is
/// named as such.
///
/// Only files are replaced. A symbolic link stays, and what it points to is replaced; devices that are
/// streams of bytes (/dev/null, /dev/stdout) and pipes are written to; a folder, a socket or a disk is
/// refused. `standard_output` is written to whatever it is, behind what it has.
class AtomicFile {
 public:
  /// Missing folders are made. `mode`: permissions of the new file.
  explicit AtomicFile(std::filesystem::path path, unsigned mode = 0644);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, size_t size);
  void write(std::string_view text) { write(text.data(), text.size()); }
  /// Bytes written so far.
  uint64_t size() const { return size_; }
  /// The name that commit() gives it; it must lie in the same folder.
  void rename(std::filesystem::path path);
  void commit();

 private:
  void aim(std::filesystem::path path);
  void open(unsigned mode);
  void place();
  void flush();
  void give_up();
  [[noreturn]] void fail_with(const char* action, int error) const;

  std::filesystem::path path_;    // as it was given, for messages
  std::filesystem::path target_;  // the file that is replaced: where links lead
  std::filesystem::path temporary_;
  std::vector<uint8_t> buffer_;
  uint64_t size_ = 0;
  int file_ = -1;
  bool named_ = false;   // temporary_ is there
  bool stream_ = false;  // a device or a pipe: file_ is itself
};

/// Removes what killed processes left half written in a folder: what `unfinished` tells by its name, where
/// nobody has written to it for so long.
void remove_unfinished(const std::filesystem::path& folder,
                       const std::function<bool(const std::string&)>& unfinished,
                       std::chrono::seconds since = {});

/// A new file that is not flushed to the disk: of the many in a folder that gets its name when all are there.
void write_unflushed(const std::filesystem::path& path, std::span<const uint8_t> bytes);
/// Adds lines to a file, which is made where it is not there; with `flushed` they are on the disk when this
/// returns. When that fails, the IoError says what it was ("note a bad step"), and nothing of them stays.
void append_lines(const std::filesystem::path& path, std::string_view lines, std::string_view action,
                  bool flushed = true);

/// AtomicFile in one call.
void write_file(const std::filesystem::path& path, std::span<const uint8_t> bytes, unsigned mode = 0644);
void write_file(const std::filesystem::path& path, std::string_view text, unsigned mode = 0644);

}  // namespace millrace
