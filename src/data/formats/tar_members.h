// The members of a tar file: USTAR, PAX (POSIX.1-2001) and GNU long names.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <millrace/file.h>

namespace millrace::data {

inline constexpr uint64_t tar_block = 512;

struct TarMember {
  std::string name;
  bool regular = false, folder = false;  // others (links, devices) are neither
  uint64_t offset = 0, size = 0;         // of the data in the file
  uint64_t begin = 0, end = 0;           // with its headers in front and the padding behind
};

/// True when `header` begins with a block whose checksum is that of a tar header.
bool is_tar_header(std::span<const uint8_t> header);

/// What extension headers say of the next member, instead of its own.
struct TarExtension {
  std::string name;  // "": nothing
  std::optional<uint64_t> size;
};

/// Headers one after the other, wherever their bytes come from.
class TarHeaders {
 public:
  enum class What { end_mark, extension, member };
  explicit TarHeaders(std::string path) : path_(std::move(path)) {}
  /// A header, 512 bytes at byte `at`: fills in the member's name, size and kind, and its offset.
  /// `member.size` bytes and padding follow, for an extension too: they must be given to extension().
  /// InputError when it is damaged.
  What header(std::span<const uint8_t> block, uint64_t at, TarMember& member);
  void extension(std::string_view data, uint64_t at);
  /// The name of the member before, for messages.
  const std::string& last() const { return last_; }

 private:
  std::string path_, last_ = "the start";
  TarExtension next_;
  char type_ = 0;
};

/// Calls `visit` for every member in order until it returns false; what lies between the headers is not read.
/// Offsets and sizes handed out lie inside the file. InputError when the archive is truncated, damaged or has
/// no end mark.
void for_each_tar_member(const RandomAccessFile& file, const std::function<bool(const TarMember&)>& visit);

/// The same of some members, `piece` of the file `path`; no end mark is wanted.
void for_each_tar_member(const std::string& path, const Bytes& piece,
                         const std::function<bool(const TarMember&)>& visit);

/// A USTAR header of a regular file, mode 0444, owner 0, time 0. InputError for a name over 100 bytes.
std::string tar_header(const std::string& name, uint64_t size);

/// Bytes that fill up a member of `size` bytes to the next block.
inline uint64_t tar_padding(uint64_t size) { return (512 - size % 512) % 512; }

}  // namespace millrace::data
