// Compressed files, into memory at once.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace millrace::data {

/// True for bytes that begin as a gzip (RFC 1952) or zlib (RFC 1950) stream does.
bool is_deflated(std::span<const uint8_t> head);

/// The first bytes, at most `most`, of what a gzip or zlib stream holds; fewer when it is cut off or damaged.
std::vector<uint8_t> inflate_head(std::span<const uint8_t> bytes, size_t most);

/// All that a gzip (of several members, too) or zlib stream holds. InputError, naming `path`, when it is damaged, cut off, or
/// grows beyond what real data does (200 times, or half of the machine's memory): it must not take all memory.
std::vector<uint8_t> inflate(const std::string& path, std::span<const uint8_t> bytes);

/// What Zstandard frames (RFC 8878) hold: `size` bytes. InputError, naming `path`, when they are damaged or hold another
/// count. Memory is taken as bytes appear, never for the asking.
std::vector<uint8_t> unpack_zstd(const std::string& path, std::span<const uint8_t> bytes, uint64_t size);

/// One Zstandard frame of `bytes`.
std::vector<uint8_t> pack_zstd(std::span<const uint8_t> bytes, int level = 3);

}  // namespace millrace::data
