// Checksums by name, as other programs write them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace millrace {

/// The digest in lower-case hexadecimal by the name that Python's hashlib or xxhash gives the algorithm:
/// "md5", "sha1", "sha256", "sha512", "sha3_256", "blake2b", "blake2s" …, "xxh32", "xxh64", "xxh128",
/// "xxh3_64", "xxh3_128". Nothing for any other name.
std::optional<std::string> hex_digest(const std::string& algorithm, std::span<const uint8_t> bytes);

}  // namespace millrace
