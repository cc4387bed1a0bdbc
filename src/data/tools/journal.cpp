#include "data/tools/journal.h"

#include <cerrno>
#include <cstring>
#include <unistd.h>
#include <vector>

#include "base/crc32c.h"
#include "base/file.h"
#include "base/format.h"

namespace millrace::data {
namespace {

constexpr std::string_view journal_magic = "millrace journal 1\n";

/// What stands before each record.
struct RecordHead {
  uint64_t size;
  uint32_t crc, head_crc;  // of the record; of the size

  static RecordHead of(std::string_view record) {
    const uint64_t size = record.size();
    return {size, crc32c(record.data(), record.size()), crc32c(&size, sizeof size)};
  }
};

}  // namespace

Journal::Journal(std::filesystem::path path, const std::string& identity,
                 const std::function<void(std::string_view record)>& each, bool& replaced)
    : path_(std::move(path)) {
  replaced = false;
  std::error_code ignored;
  if (path_.has_parent_path()) std::filesystem::create_directories(path_.parent_path(), ignored);
  if (read(identity, each, replaced)) return;
  file_.reset(std::fopen(path_.c_str(), "wb"));
  if (!file_) fail_writing(path_, "write it", errno);
  write(journal_magic);
  add(identity);
}

bool Journal::read(const std::string& identity, const std::function<void(std::string_view)>& each,
                   bool& replaced) {
  std::error_code ignored;
  const uint64_t size = std::filesystem::file_size(path_, ignored);
  if (ignored) return false;
  file_.reset(std::fopen(path_.c_str(), "r+b"));
  if (!file_) fail_writing(path_, "open it", errno);
  const auto get = [&](void* to, size_t bytes) { return std::fread(to, 1, bytes, file_.get()) == bytes; };
  uint64_t at = 0;
  const auto record = [&](std::string& text) {
    RecordHead head{};
    if (!get(&head, sizeof head) || head.head_crc != crc32c(&head.size, sizeof head.size)) return false;
    if (head.size > size - at - sizeof head) return false;
    text.resize(head.size);
    if (!get(text.data(), text.size()) || crc32c(text.data(), text.size()) != head.crc) return false;
    at += sizeof head + head.size;
    return true;
  };
  std::string magic(journal_magic.size(), ' '), text;
  const bool ours = size >= magic.size() && get(magic.data(), magic.size()) && magic == journal_magic;
  at = magic.size();
  if (!ours || !record(text) || text != identity) {
    replaced = true;
    return false;
  }
  while (at + sizeof(RecordHead) <= size && record(text)) each(text);
  file_.reset();
  std::filesystem::resize_file(path_, at, ignored);
  if (ignored) fail<IoError>("{}: cannot be cut to its whole records: {}", path_.string(), ignored.message());
  file_.reset(std::fopen(path_.c_str(), "ab"));
  if (!file_) fail_writing(path_, "open it", errno);
  return true;
}

void Journal::write(std::string_view bytes) {
  if (!bytes.empty() && std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size())
    fail_writing(path_, "write it", errno);
}

void Journal::add(std::string_view record) {
  const RecordHead head = RecordHead::of(record);
  write({reinterpret_cast<const char*>(&head), sizeof head});
  write(record);
  if (std::fflush(file_.get()) != 0) fail_writing(path_, "write it", errno);
  const auto now = std::chrono::steady_clock::now();
  if (now - flushed_ < std::chrono::seconds(1)) return;
  if (::fsync(::fileno(file_.get())) != 0) fail_writing(path_, "write it", errno);
  flushed_ = now;
}

void Journal::remove() {
  file_.reset();
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

}  // namespace millrace::data
