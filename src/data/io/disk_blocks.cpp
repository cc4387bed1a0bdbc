#include "data/io/disk_blocks.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>
#include <vector>

#include "base/crc32c.h"
#include "base/file.h"
#include "base/format.h"

namespace millrace::data {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t disk_page = 16 << 10;

uint64_t pages_of(uint64_t size) { return (size + disk_page - 1) / disk_page; }

bool read_exactly(int file, uint64_t offset, std::span<uint8_t> out) {
  while (!out.empty()) {
    const ssize_t got = ::pread(file, out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    offset += static_cast<uint64_t>(got);
    out = out.subspan(static_cast<size_t>(got));
  }
  return true;
}

bool parse_name(const std::string& text, int base, uint64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc() && end == text.data() + text.size();
}

/// The pages of an opened file that hold [offset, offset + out.size()).
bool read_checked(int file, uint64_t size, uint64_t offset, std::span<uint8_t> out) {
  struct stat status {};
  if (::fstat(file, &status) != 0 || static_cast<uint64_t>(status.st_size) != DiskBlocks::file_size(size))
    return false;
  const uint64_t first = offset / disk_page, last = (offset + out.size() - 1) / disk_page,
                 begin = first * disk_page, end = std::min(size, (last + 1) * disk_page);
  std::vector<uint32_t> checksums(last - first + 1);
  if (!read_exactly(file, size + first * sizeof(uint32_t),
                    {reinterpret_cast<uint8_t*>(checksums.data()), checksums.size() * sizeof(uint32_t)}))
    return false;
  const bool whole = begin == offset && end == offset + out.size();
  std::vector<uint8_t> around(whole ? 0 : end - begin);
  const std::span<uint8_t> bytes = whole ? out : std::span<uint8_t>(around);
  if (!read_exactly(file, begin, bytes)) return false;
  for (uint64_t page = first; page <= last; ++page) {
    const uint64_t at = (page - first) * disk_page, length = std::min(disk_page, bytes.size() - at);
    if (crc32c(bytes.data() + at, length) != checksums[page - first]) return false;
  }
  if (!whole) std::memcpy(out.data(), around.data() + (offset - begin), out.size());
  return true;
}

}  // namespace

DiskBlocks::DiskBlocks(fs::path folder, uint64_t limit) : folder_(std::move(folder)), limit_(limit) {
  if (limit_ == 0) folder_.clear();
  if (on()) scan();
}

fs::path DiskBlocks::path(const BlockKey& key) const {
  return folder_ / fmt::format("{:016x}", key.first) / std::to_string(key.second);
}

bool DiskBlocks::has(const BlockKey& key) const {
  const auto found = places_.find(key);
  return on() && found != places_.end() && found->second->written;
}

void DiskBlocks::add(const BlockKey& key, uint64_t size, bool written) {
  forget(key);
  places_[key] = blocks_.insert(blocks_.end(), {key, size, written});
  bytes_ += size;
}

void DiskBlocks::scan() {
  std::vector<std::tuple<fs::file_time_type, BlockKey, uint64_t>> found;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder_, error), end; !error && it != end; it.increment(error)) {
    std::error_code gone;
    BlockKey key;
    if (!it->is_regular_file(gone) || !parse_name(it->path().filename().string(), 10, key.second) ||
        !parse_name(it->path().parent_path().filename().string(), 16, key.first))
      continue;
    const auto time = it->last_write_time(gone);
    const uint64_t size = it->file_size(gone);
    if (!gone) found.emplace_back(time, key, size);
  }
  std::sort(found.begin(), found.end());
  for (const auto& [time, key, size] : found) add(key, size, true);
  for (auto at = blocks_.begin(); bytes_ > limit_ && at != blocks_.end();) {
    const BlockKey oldest = (at++)->key;
    fs::remove(path(oldest), error);
    forget(oldest);
  }
}

bool DiskBlocks::admit(const BlockKey& key, uint64_t size) {
  const uint64_t wanted = file_size(size);
  if (!on() || wanted > limit_ || (refused_ > 0 && wanted >= refused_)) return false;
  if (places_.contains(key)) forget(key);  // a damaged one is written anew
  uint64_t removable = 0;
  if (bytes_ + wanted > limit_)
    for (const Block& block : blocks_)
      if (block.written && !open_.contains(block.key.first)) removable += block.size;
  if (bytes_ + wanted > limit_ + removable) {
    refused_ = wanted;
    return false;
  }
  for (auto at = blocks_.begin(); bytes_ + wanted > limit_ && at != blocks_.end();) {
    const Block oldest = *at++;
    if (!oldest.written || open_.contains(oldest.key.first)) continue;
    std::error_code ignored;
    fs::remove(path(oldest.key), ignored);
    forget(oldest.key);
  }
  add(key, wanted, false);
  return true;
}

void DiskBlocks::written(const BlockKey& key) {
  const auto found = places_.find(key);
  if (found != places_.end()) found->second->written = true;
  refused_ = 0;
}

void DiskBlocks::forget(const BlockKey& key) {
  const auto found = places_.find(key);
  if (found == places_.end()) return;
  bytes_ -= found->second->size;
  refused_ = 0;
  blocks_.erase(found->second);
  places_.erase(found);
}

void DiskBlocks::used(const BlockKey& key, uint64_t size) {
  const auto found = places_.find(key);
  if (found == places_.end()) return add(key, file_size(size), true);
  blocks_.splice(blocks_.end(), blocks_, found->second);
  found->second->written = true;
}

std::string DiskBlocks::give_up(const std::string& why) {
  const fs::path folder = std::exchange(folder_, {});
  return fmt::format("{}: remote data is no longer kept on disk ({})", folder.string(), why);
}

uint64_t DiskBlocks::file_size(uint64_t size) { return size + pages_of(size) * sizeof(uint32_t); }

bool DiskBlocks::read_pages(const fs::path& path, uint64_t size, uint64_t offset, std::span<uint8_t> out) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool good = read_checked(file, size, offset, out);
  // Used lately, for other processes; not said each time, as most reads are small.
  struct stat status {};
  if (good && ::fstat(file, &status) == 0 && status.st_mtim.tv_sec + 600 < std::time(nullptr))
    ::futimens(file, nullptr);
  ::close(file);
  return good;
}

void DiskBlocks::write(const fs::path& path, std::span<const uint8_t> bytes) {
  std::vector<uint32_t> checksums;
  for (uint64_t at = 0; at < bytes.size(); at += disk_page)
    checksums.push_back(crc32c(bytes.data() + at, std::min<uint64_t>(disk_page, bytes.size() - at)));
  AtomicFile file(path);
  file.write(bytes.data(), bytes.size());
  file.write(checksums.data(), checksums.size() * sizeof(uint32_t));
  file.commit();
}

}  // namespace millrace::data
