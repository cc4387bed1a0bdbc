// Tokens one after the other, two bytes each where the vocabulary allows it: in memory, or where they are too
// many in a file that is mapped.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace millrace::data {

/// A copy shares the tokens.
class TokenStore {
 public:
  int64_t size() const { return size_; }
  /// As the models take them; at + out.size() ≤ size(). IoError when they lie in a file that is damaged or
  /// was changed.
  void get(int64_t at, std::span<int64_t> out) const;
  /// `count` tokens from `first` on.
  TokenStore part(int64_t first, int64_t count) const;

 private:
  friend class TokenWriter;
  friend std::optional<struct Tokenised> read_tokens(const std::filesystem::path&, const std::string&,
                                                     int64_t);
  bool narrow_ = true;
  std::shared_ptr<const void> owner_;
  const uint8_t* data_ = nullptr;
  int64_t size_ = 0, vocabulary_ = 0;
  std::string file_;  // "" in memory
};

/// Texts as tokens, before it is said which of them are used.
struct Tokenised {
  TokenStore tokens;
  std::vector<int64_t> ends;   // of each text in `tokens`
  std::vector<int64_t> bytes;  // of each text
  std::string file;            // where the tokens are, if not in memory
};

/// Takes tokens in memory, until they are more than `most_bytes`; from then on they go to a file in the cache
/// folder (tokens/), which is kept under `key`, or where that is empty is gone when the last TokenStore of it
/// is.
class TokenWriter {
 public:
  TokenWriter(int64_t vocabulary, int64_t most_bytes, std::string key);
  ~TokenWriter();
  /// IoError when there is no room on the disk.
  void add(std::span<const int32_t> ids);
  /// Puts the tokens into `texts`, which has all else.
  void finish(Tokenised& texts);

 private:
  struct File;
  int64_t vocabulary_;
  bool narrow_;
  int64_t most_bytes_, size_ = 0;
  std::string key_;
  std::shared_ptr<std::vector<uint8_t>> memory_;
  std::unique_ptr<File> file_;
};

/// What a TokenWriter of that vocabulary wrote to a file under that key; nothing when it is damaged or of
/// another key. IoError when it cannot be read.
std::optional<Tokenised> read_tokens(const std::filesystem::path& file, const std::string& key,
                                     int64_t vocabulary);
/// What a TokenWriter of that vocabulary kept under that key; nothing when there is none, or it is damaged.
std::optional<Tokenised> find_tokens(const std::string& key, int64_t vocabulary);

}  // namespace millrace::data
