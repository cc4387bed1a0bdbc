#include "backend/cpu/codegen/object_cache.h"

#include <atomic>
#include <exception>
#include <filesystem>
#include <list>
#include <mutex>
#include <unistd.h>
#include <utility>
#include <xxhash.h>

#include "base/cache_folder.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "base/format.h"

namespace millrace::codegen {
namespace {

namespace fs = std::filesystem;

/// What a file of the cache holds: the CRC-32C of the rest, the key, a zero, and the object.
std::string file_of(const std::string& rest) {
  const uint32_t crc = crc32c(rest.data(), rest.size());
  return std::string(reinterpret_cast<const char*>(&crc), sizeof crc) + rest;
}

struct Shared {
  std::mutex mutex;
  std::list<std::map<std::string, std::string_view, std::less<>>> offered;
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
  const auto where = cache_folder("kernels");
  if (!where) return std::nullopt;
  try {
    const std::string file = read_text(*where / (hash_name(key) + ".o")), begin = key + '\0';
    if (file.size() < sizeof(uint32_t)) return std::nullopt;
    const std::string rest = file.substr(sizeof(uint32_t));
    if (!rest.starts_with(begin) || file_of(rest) != file) return std::nullopt;
    return rest.substr(begin.size());
  } catch (const IoError&) {
    return std::nullopt;
  }
}

}  // namespace

std::shared_ptr<const void> offer_objects(std::map<std::string, std::string_view, std::less<>> objects) {
  const std::lock_guard lock(shared().mutex);
  const auto at = shared().offered.insert(shared().offered.end(), std::move(objects));
  return {&*at, [at](const void*) {
            const std::lock_guard removing(shared().mutex);
            shared().offered.erase(at);
          }};
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
  const XXH128_hash_t hash = XXH3_128bits(key.data(), key.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::optional<std::string> find_object(const std::string& key) {
  std::optional<std::string> found;
  {
    const std::lock_guard lock(shared().mutex);
    for (const auto& offered : shared().offered)
      if (const auto at = offered.find(key); !found && at != offered.end()) found = at->second;
  }
  if (!found) found = read_object(key);
  if (found) record(key, *found);
  return found;
}

void store_object(const std::string& key, std::string_view object) {
  record(key, object);
  const auto where = cache_folder("kernels");
  if (!where) return;
  static std::atomic<int> counter{0};
  std::error_code error;
  fs::create_directories(*where, error);
  const std::string name = hash_name(key), file = file_of(key + '\0' + std::string(object));
  const fs::path temporary = *where / fmt::format("{}.{}.{}", name, ::getpid(), counter++);
  try {
    // A file that a crash cuts short fails its checksum.
    write_unflushed(temporary, {reinterpret_cast<const uint8_t*>(file.data()), file.size()});
    fs::rename(temporary, *where / (name + ".o"));
  } catch (const std::exception&) {
    fs::remove(temporary, error);
  }
}

}  // namespace millrace::codegen
