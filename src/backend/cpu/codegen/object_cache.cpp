#include "backend/cpu/codegen/object_cache.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <span>
#include <unistd.h>
#include <utility>
#include <vector>

#include "base/cache_folder.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "base/format.h"

namespace millrace::codegen {
namespace {

namespace fs = std::filesystem;

struct Header {
  char magic[8];
  uint64_t key_bytes, object_bytes;
  uint32_t crc, unused;  // CRC-32C of key and object
};
constexpr char kMagic[8] = {'M', 'L', 'R', 'C', 'O', 'B', 'J', '1'};

std::optional<fs::path> folder() { return cache_folder("kernels"); }

uint32_t checksum(std::string_view text) { return crc32c(text.data(), text.size()); }

/// FNV-1a over 64 bits, from a given start, with a final mix (MurmurHash3's).
uint64_t hash(std::string_view key, uint64_t start) {
  for (const char c : key) start = (start ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  start = (start ^ start >> 33) * 0xFF51AFD7ED558CCD;
  start = (start ^ start >> 33) * 0xC4CEB9FE1A85EC53;
  return start ^ start >> 33;
}

struct Shared {
  std::mutex mutex;
  std::vector<const OfferedObjects*> offered;
  bool recording = false;
  std::map<std::string, std::string> recorded;
};

/// Outlives whatever may be destroyed at the end of the process.
Shared& shared() {
  static Shared& one = *new Shared;
  return one;
}

void record(const std::string& key, std::string_view object) {
  const std::lock_guard lock(shared().mutex);
  if (shared().recording) shared().recorded.emplace(key, object);
}

std::optional<std::string> read_object(const std::string& key) {
  const auto where = folder();
  if (!where) return std::nullopt;
  std::ifstream file(*where / (hash_name(key) + ".o"), std::ios::binary);
  Header header;
  if (!file.read(reinterpret_cast<char*>(&header), sizeof header)) return std::nullopt;
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 || header.key_bytes != key.size() ||
      header.object_bytes > (uint64_t{1} << 30))
    return std::nullopt;
  std::string content(header.key_bytes + header.object_bytes, '\0');
  if (!file.read(content.data(), static_cast<std::streamsize>(content.size()))) return std::nullopt;
  if (checksum(content) != header.crc || content.compare(0, key.size(), key) != 0) return std::nullopt;
  return content.substr(key.size());
}

}  // namespace

OfferedObjects::OfferedObjects(std::map<std::string, std::string_view, std::less<>> objects)
    : objects_(std::move(objects)) {
  const std::lock_guard lock(shared().mutex);
  shared().offered.push_back(this);
}

OfferedObjects::~OfferedObjects() {
  const std::lock_guard lock(shared().mutex);
  std::erase(shared().offered, this);
}

RecordedObjects::RecordedObjects() {
  const std::lock_guard lock(shared().mutex);
  MILLRACE_CHECK(!shared().recording, "objects are recorded twice at the same time");
  shared().recording = true;
  shared().recorded.clear();
}

RecordedObjects::~RecordedObjects() {
  const std::lock_guard lock(shared().mutex);
  shared().recording = false;
  shared().recorded.clear();
}

std::map<std::string, std::string> RecordedObjects::objects() const {
  const std::lock_guard lock(shared().mutex);
  return shared().recorded;
}

std::string hash_name(std::string_view key) {
  return fmt::format("{:016x}{:016x}", hash(key, 0xCBF29CE484222325), hash(key, 0x9AE16A3B2F90404F));
}

std::optional<std::string> find_object(const std::string& key) {
  std::optional<std::string> found;
  {
    const std::lock_guard lock(shared().mutex);
    for (const OfferedObjects* offered : shared().offered)
      if (const auto at = offered->objects_.find(key); !found && at != offered->objects_.end())
        found = at->second;
  }
  if (!found) found = read_object(key);
  if (found) record(key, *found);
  return found;
}

void store_object(const std::string& key, std::string_view object) {
  record(key, object);
  const auto where = folder();
  if (!where) return;
  static std::atomic<int> counter{0};
  std::error_code error;
  fs::create_directories(*where, error);
  const fs::path path = *where / (hash_name(key) + ".o");
  const fs::path temporary = *where / fmt::format("{}.{}.{}", hash_name(key), ::getpid(), counter++);
  std::string content = key;
  content += object;
  Header header{{}, key.size(), object.size(), checksum(content), 0};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  // No flush to the disk: a file that a crash cuts short fails its checksum.
  std::ofstream file(temporary, std::ios::binary);
  file.write(reinterpret_cast<const char*>(&header), sizeof header);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  file.close();
  if (file) fs::rename(temporary, path, error);
  if (!file || error) fs::remove(temporary, error);
}

}  // namespace millrace::codegen
