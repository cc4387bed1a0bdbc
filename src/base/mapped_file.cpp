#include "base/mapped_file.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <mutex>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "base/file.h"
#include "base/format.h"

namespace millrace {
namespace {

// Read by the signal's handler: fixed memory, no locks. What finds no place is not watched.
struct Watched {
  std::atomic<bool> taken{false}, lost{false};
  std::atomic<uintptr_t> begin{0}, end{0};
};
std::array<Watched, 4096> watched;
std::atomic<int> lost_files{0};  // of those that are mapped
struct sigaction before {};      // what was done about SIGBUS

/// A file as it was when it was mapped.
struct Opened {
  std::string path;
  struct stat status {};
};
std::mutex opened_mutex;
std::array<Opened, watched.size()>& opened() {
  static auto* const all = new std::array<Opened, watched.size()>;  // lives as long as the process
  return *all;
}

bool changed(const Opened& file) {
  struct stat now {};
  if (::stat(file.path.c_str(), &now) != 0 || now.st_ino != file.status.st_ino ||
      now.st_dev != file.status.st_dev || now.st_size > file.status.st_size)
    return false;
  return now.st_size != file.status.st_size || now.st_mtim.tv_sec != file.status.st_mtim.tv_sec ||
         now.st_mtim.tv_nsec != file.status.st_mtim.tv_nsec;
}

void on_bus_error(int, siginfo_t* info, void*) {
  const int error = errno;
  const auto at = reinterpret_cast<uintptr_t>(info->si_addr);
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  for (Watched& file : watched) {
    const uintptr_t begin = file.begin, end = file.end;
    if (begin == 0 || at < begin || at >= end) continue;
    const uintptr_t from = at / page * page;
    void* const memory = ::mmap(reinterpret_cast<void*>(from), end - from, PROT_READ,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (memory == MAP_FAILED) break;
    if (!file.lost.exchange(true)) ++lost_files;
    errno = error;
    return;  // and read again
  }
  ::sigaction(SIGBUS, &before, nullptr);  // not ours: it comes again
  errno = error;
}

int watch(const std::filesystem::path& path, int descriptor, const void* data, size_t size) {
  static const bool installed = [] {
    struct sigaction action {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    return ::sigaction(SIGBUS, &action, &before) == 0;
  }();
  static std::atomic<size_t> next{0};
  for (size_t tries = 0; installed && tries < watched.size(); ++tries) {
    const size_t i = next++ % watched.size();
    if (watched[i].taken.exchange(true)) continue;
    {
      const std::lock_guard lock(opened_mutex);
      opened()[i].path = path.string();
      ::fstat(descriptor, &opened()[i].status);
    }
    watched[i].end = reinterpret_cast<uintptr_t>(data) + size;
    watched[i].begin = reinterpret_cast<uintptr_t>(data);
    return static_cast<int>(i);
  }
  return -1;
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) {
  const OpenFile file(path);
  if (file.size == 0) return;
  void* memory = ::mmap(nullptr, file.size, PROT_READ, MAP_PRIVATE, file.file, 0);
  if (memory == MAP_FAILED) fail<IoError>("{}: cannot be mapped: {}", path.string(), std::strerror(errno));
  data_ = static_cast<const uint8_t*>(memory);
  size_ = file.size;
  place_ = watch(path, file.file, data_, size_);
}

MappedFile::~MappedFile() {
  if (place_ >= 0) watched[static_cast<size_t>(place_)].begin = 0;
  if (data_) ::munmap(const_cast<uint8_t*>(data_), size_);
  if (place_ < 0) return;
  Watched& place = watched[static_cast<size_t>(place_)];
  if (place.lost.exchange(false)) --lost_files;
  place.taken = false;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      place_(std::exchange(other.place_, -1)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(place_, other.place_);
  return *this;
}

bool any_mapped_file_lost() { return lost_files > 0; }

bool MappedFile::lost() const { return place_ >= 0 && watched[static_cast<size_t>(place_)].lost; }

namespace {

/// opened_mutex is held.
void require_unchanged(size_t i) {
  const Opened& file = opened()[i];
  if (watched[i].lost)
    fail<IoError>("{}: a part of it was gone when it was read: it was cut short meanwhile, or its disk fails",
                  file.path);
  if (changed(file))
    fail<IoError>("{}: it was changed while it was read; start again when it stays as it is", file.path);
}

}  // namespace

void require_mapped_file(const void* memory) {
  const auto at = reinterpret_cast<uintptr_t>(memory);
  {
    const std::lock_guard lock(opened_mutex);
    for (size_t i = 0; i < watched.size(); ++i) {
      const uintptr_t begin = watched[i].begin;
      if (begin == 0 || at < begin || at >= watched[i].end) continue;
      require_unchanged(i);
      return;
    }
  }
  require_mapped_files(true);
}

void require_mapped_files(bool now) {
  static std::atomic<int64_t> look_next{0};
  const int64_t time = std::chrono::steady_clock::now().time_since_epoch().count();
  if (lost_files == 0 && !now && time < look_next.load(std::memory_order_relaxed)) return;
  look_next.store(time + 1'000'000'000, std::memory_order_relaxed);
  const std::lock_guard lock(opened_mutex);
  for (size_t i = 0; i < watched.size(); ++i) {
    if (watched[i].begin != 0) require_unchanged(i);
  }
}

}  // namespace millrace
