// A file of tokens: the tokens, then as i64 the ends and the bytes of the texts, the key, and a trailer of 48
// bytes. All numbers are little-endian.
#include "data/encode/token_store.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <unistd.h>
#include <xxhash.h>

#include "base/cache_folder.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "base/format.h"
#include "base/mapped_file.h"

namespace millrace::data {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t kMagic = 0x324e454b4f54524d;  // "MRTOKEN2"

struct Trailer {
  uint64_t magic = kMagic;
  uint64_t width = 0, tokens = 0, texts = 0, key_bytes = 0;
  uint32_t crc = 0;  // of all between the tokens and the trailer
  uint32_t reserved = 0;
};
static_assert(sizeof(Trailer) == 48);

fs::path folder() {
  if (const auto own = cache_folder("tokens")) return *own;
  return fs::temp_directory_path() / "millrace-tokens";
}

fs::path path_of(const std::string& key) {
  return folder() / fmt::format("{:016x}.tokens", XXH3_64bits(key.data(), key.size()));
}

uint64_t padded(uint64_t bytes) { return (bytes + 7) / 8 * 8; }

}  // namespace

void TokenStore::get(int64_t at, std::span<int64_t> out) const {
  if (narrow_)
    std::copy_n(reinterpret_cast<const uint16_t*>(data_) + at, out.size(), out.begin());
  else
    std::copy_n(reinterpret_cast<const int32_t*>(data_) + at, out.size(), out.begin());
  if (file_.empty()) return;
  require_mapped_files();
  // The checksum leaves out the tokens, which would all have to be read for it.
  for (const int64_t token : out)
    if (token < 0 || token >= vocabulary_)
      fail<IoError>(
          "{}: holds the token {} of a vocabulary of {}: it is damaged; remove it, and it is made again",
          file_, token, vocabulary_);
}

TokenStore TokenStore::part(int64_t first, int64_t count) const {
  TokenStore part = *this;
  part.data_ += first * (narrow_ ? 2 : 4);
  part.size_ = count;
  return part;
}

std::optional<Tokenised> read_tokens(const fs::path& path, const std::string& key, int64_t vocabulary) {
  const auto file = std::make_shared<MappedFile>(path);
  const auto bytes = file->bytes();
  Trailer t;
  if (bytes.size() < sizeof t) return std::nullopt;
  std::memcpy(&t, bytes.data() + bytes.size() - sizeof t, sizeof t);
  const uint64_t most = bytes.size();
  if (t.magic != kMagic || (t.width != 2 && t.width != 4) || t.tokens > most || t.texts > most ||
      t.key_bytes > most)
    return std::nullopt;
  const uint64_t begin = padded(t.tokens * t.width), tables = t.texts * 16;
  if (begin + tables + t.key_bytes + sizeof t != bytes.size()) return std::nullopt;
  const uint8_t* at = bytes.data() + begin;
  if (crc32c(at, tables + t.key_bytes) != t.crc) return std::nullopt;
  Tokenised out;
  for (auto* list : {&out.ends, &out.bytes}) {
    list->resize(t.texts);
    if (t.texts > 0) std::memcpy(list->data(), at, t.texts * 8);
    at += t.texts * 8;
  }
  if (std::string_view(reinterpret_cast<const char*>(at), t.key_bytes) != key) return std::nullopt;
  // A checksum does not say who wrote the file: positions must lie within the tokens, and nothing be counted
  // below zero.
  int64_t all = 0;
  if (!std::is_sorted(out.ends.begin(), out.ends.end()) ||
      (t.texts > 0 && (out.ends.front() < 0 || out.ends.back() != static_cast<int64_t>(t.tokens))) ||
      std::any_of(out.bytes.begin(), out.bytes.end(),
                  [&](int64_t each) { return each < 0 || __builtin_add_overflow(all, each, &all); }))
    return std::nullopt;
  out.tokens.narrow_ = t.width == 2;
  out.tokens.data_ = bytes.data();
  out.tokens.size_ = static_cast<int64_t>(t.tokens);
  out.tokens.owner_ = file;
  out.tokens.vocabulary_ = vocabulary;
  out.tokens.file_ = out.file = path.string();
  return out;
}

struct TokenWriter::File {
  fs::path path;
  AtomicFile file;
  explicit File(fs::path to) : path(std::move(to)), file(path, 0600) {}
};

TokenWriter::TokenWriter(int64_t vocabulary, int64_t most_bytes, std::string key)
    : vocabulary_(vocabulary),
      narrow_(vocabulary <= 65536),
      most_bytes_(most_bytes),
      key_(std::move(key)),
      memory_(std::make_shared<std::vector<uint8_t>>()) {}

TokenWriter::~TokenWriter() = default;

void TokenWriter::add(std::span<const int32_t> ids) {
  const size_t width = narrow_ ? 2 : 4;
  std::vector<uint16_t> narrow;
  const void* from = ids.data();
  if (narrow_) {
    narrow.assign(ids.begin(), ids.end());
    from = narrow.data();
  }
  size_ += static_cast<int64_t>(ids.size());
  if (!file_ &&
      memory_->size() + ids.size() * width > static_cast<size_t>(std::max<int64_t>(most_bytes_, 0))) {
    static std::atomic<int> number = 0;
    remove_unfinished(
        folder(),
        [](const std::string& name) {
          return name.find(".tokens.tmp-") != std::string::npos || name.starts_with("unnamed-");
        },
        std::chrono::hours(1));  // a file that another process writes to is younger
    file_ = std::make_unique<File>(
        key_.empty() ? folder() / fmt::format("unnamed-{}-{}.tokens", ::getpid(), number++) : path_of(key_));
    file_->file.write(memory_->data(), memory_->size());
    memory_ = std::make_shared<std::vector<uint8_t>>();
  }
  if (file_) {
    file_->file.write(from, ids.size() * width);
    return;
  }
  const auto* bytes = static_cast<const uint8_t*>(from);
  memory_->insert(memory_->end(), bytes, bytes + ids.size() * width);
}

void TokenWriter::finish(Tokenised& texts) {
  if (!file_) {
    texts.tokens.narrow_ = narrow_;
    texts.tokens.data_ = memory_->data();
    texts.tokens.size_ = size_;
    texts.tokens.owner_ = memory_;
    return;
  }
  AtomicFile& out = file_->file;
  Trailer t;
  t.width = narrow_ ? 2 : 4;
  t.tokens = static_cast<uint64_t>(size_);
  t.texts = texts.ends.size();
  t.key_bytes = key_.size();
  const char zeros[8] = {};
  out.write(zeros, padded(t.tokens * t.width) - t.tokens * t.width);
  const auto put = [&](const void* data, size_t size) {
    t.crc = crc32c(data, size, t.crc);
    out.write(data, size);
  };
  for (const auto* list : {&texts.ends, &texts.bytes}) put(list->data(), list->size() * 8);
  put(key_.data(), key_.size());
  out.write(&t, sizeof t);
  out.commit();
  auto opened = read_tokens(file_->path, key_, vocabulary_);
  if (!opened) fail<IoError>("{}: is not what was just written; is the disk damaged?", file_->path.string());
  texts.tokens = opened->tokens;
  texts.file = file_->path.string();
  if (key_.empty()) {
    std::error_code ignored;
    fs::remove(file_->path, ignored);
    texts.file = "a file";
  }
}

std::optional<Tokenised> find_tokens(const std::string& key, int64_t vocabulary) {
  if (key.empty()) return std::nullopt;
  const fs::path path = path_of(key);
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return std::nullopt;
  try {
    return read_tokens(path, key, vocabulary);
  } catch (const IoError&) {
    return std::nullopt;
  }
}

}  // namespace millrace::data
