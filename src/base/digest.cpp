#include "base/digest.h"

#include <algorithm>
#include <openssl/evp.h>
#include <xxhash.h>

#include "base/format.h"

namespace millrace {
namespace {

std::optional<std::string> xxhash_digest(const std::string& name, std::span<const uint8_t> bytes) {
  if (name == "xxh32") return fmt::format("{:08x}", XXH32(bytes.data(), bytes.size(), 0));
  if (name == "xxh64") return fmt::format("{:016x}", XXH64(bytes.data(), bytes.size(), 0));
  if (name == "xxh3_64") return fmt::format("{:016x}", XXH3_64bits(bytes.data(), bytes.size()));
  if (name != "xxh128" && name != "xxh3_128") return std::nullopt;
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace

std::optional<std::string> hex_digest(const std::string& algorithm, std::span<const uint8_t> bytes) {
  if (auto digest = xxhash_digest(algorithm, bytes)) return digest;
  std::string name = algorithm;
  if (name == "blake2b") name = "blake2b512";
  if (name == "blake2s") name = "blake2s256";
  if (name.starts_with("sha3_")) std::replace(name.begin(), name.end(), '_', '-');
  const EVP_MD* method = EVP_get_digestbyname(name.c_str());
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  if (!method || !EVP_Digest(bytes.data(), bytes.size(), digest, &size, method, nullptr)) return std::nullopt;
  std::string text;
  for (unsigned i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

}  // namespace millrace
