// The members of a tar file: USTAR, PAX (POSIX.1-2001) and GNU long names.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace millrace::data {

struct TarMember {
  std::string name;
  bool regular = false, folder = false;  // others (links, devices) are neither
  uint64_t offset = 0, size = 0;         // of the data in the file
  uint64_t begin = 0, end = 0;           // with its headers in front and the padding behind
};

/// True when `header` begins with a block whose checksum is that of a tar header.
bool is_tar_header(std::span<const uint8_t> header);

/// Calls `visit` for every member in order until it returns false. `path` is for messages. Offsets and sizes
/// handed out lie inside `bytes`. InputError when the archive is truncated, damaged or has no end mark.
void for_each_tar_member(const std::string& path, std::span<const uint8_t> bytes,
                         const std::function<bool(const TarMember&)>& visit);

/// The same for the members whose headers begin in [begin, end) of `bytes`; no end mark is wanted. InputError also when the
/// range does not lie within `bytes`.
void for_each_tar_member(const std::string& path, std::span<const uint8_t> bytes, uint64_t begin,
                         uint64_t end, const std::function<bool(const TarMember&)>& visit);

/// A USTAR header of a regular file, mode 0444, owner 0, time 0. InputError for a name over 100 bytes.
std::string tar_header(const std::string& name, uint64_t size);

/// Bytes that fill up a member of `size` bytes to the next block.
inline uint64_t tar_padding(uint64_t size) { return (512 - size % 512) % 512; }

}  // namespace millrace::data
