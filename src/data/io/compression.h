// Compressed contents, as tars and their members may be: gzip (zlib), bzip2 (libbz2), xz (liblzma), zstd
// (libzstd).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <millrace/file.h>

namespace millrace::data {

enum class Compression { none, gzip, bzip2, xz, zstd };

/// By the suffix of a name in any case: .gz, .bz2, .xz, .zst.
Compression compression_of(std::string_view name);
/// The name without that suffix.
std::string_view without_compression(std::string_view name);
/// By the first bytes.
Compression compression_of(std::span<const uint8_t> head);

/// The whole content; streams that follow each other are joined. InputError, worded to follow a name ("is
/// damaged …"), when the bytes are damaged, end early or give more than `limit` bytes. Memory grows with what
/// is really there.
std::vector<uint8_t> decompress(Compression compression, std::span<const uint8_t> bytes, uint64_t limit);
/// The same of a whole file, as one in memory of the same path; errors begin with that.
std::shared_ptr<const RandomAccessFile> decompress_file(const RandomAccessFile& file, Compression compression,
                                                        uint64_t limit);
/// Beyond what real data of so many packed bytes unpacks to: 200 times, or half of the machine's memory.
uint64_t unpacked_limit(uint64_t packed);

/// True for bytes that begin as a gzip (RFC 1952) or zlib (RFC 1950) stream does; decompress() takes both as
/// gzip.
bool is_deflated(std::span<const uint8_t> head);
/// The beginning of what such a stream holds: up to `size` bytes, fewer when the input ends or is damaged.
std::vector<uint8_t> deflated_head(std::span<const uint8_t> bytes, size_t size);
/// Deflate without a frame around it (zip's method 8), which must give exactly `size` bytes.
std::vector<uint8_t> inflate_raw(std::span<const uint8_t> bytes, uint64_t size);

/// One Zstandard frame (RFC 8878) of `bytes`.
std::vector<uint8_t> pack_zstd(std::span<const uint8_t> bytes);

}  // namespace millrace::data
