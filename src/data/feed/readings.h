// The samples of a data set as parts read them: once, or anew each time; bad ones replaced. Part of the feed
// of samples.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <millrace/dataset.h>
#include <millrace/feed.h>

#include "data/feed/aligned_bytes.h"
#include "data/feed/part.h"
#include "data/feed/rows_ahead.h"

namespace millrace::data {

struct ReadingsOptions {
  int threads = 1;   // that read samples which are kept
  int64_t most = 0;  // bytes that may be kept
  const char* unit = "samples";
  std::function<void(int64_t, int64_t)> progress =
      nullptr;  // of reading what is kept, from one thread: (done, total)
};

/// A sample is bad as a whole when one of the parts says so. Thread-safe.
class Readings {
 public:
  /// What one thread reads with.
  struct Reader {
    std::vector<std::unique_ptr<Part::Scratch>> scratch;  // of each part
    AlignedBytes bytes;                                   // of one sample
    std::vector<std::byte*> stored;                       // of each part, where it reads a sample
  };

  /// `samples` may be null where no part reads. InputError: no sample can be read.
  Readings(std::shared_ptr<const Dataset> samples, std::vector<std::shared_ptr<const Part>> parts,
           ReadingsOptions options);

  Reader reader() const;
  /// What each part (of those that read) has of sample `index` or, when it is bad, of the next good one;
  /// `index` becomes the one taken. `key` names the row to parts that do not read the same each time; its
  /// index is ignored. Where nothing is kept it lies where `reader.stored` says. Valid until `reader` reads
  /// again.
  std::span<std::byte* const> get(int64_t& index, const SampleKey& key, Reader& reader);
  /// Brings a sample that is kept nearer, of large ones their beginning: rows of an epoch lie anywhere, and
  /// waiting for each of them in turn takes longer than all else that is done with small ones.
  [[gnu::always_inline]] void fetch(int64_t index) const {  // else GCC takes it for doing nothing
    constexpr size_t line = 64, most = 4 * line;
    for (size_t p = 0; p < cache_.size() && index >= 0; ++p)
      for (size_t at = 0; at < std::min(sizes_[p], most); at += line)
        __builtin_prefetch(place(p, index) + at);
  }

  /// Does any part read?
  bool reads() const { return sample_bytes_ > 0; }
  /// Are all samples in memory?
  bool kept() const { return kept_; }
  /// Of a sample; of all, 0 where they cannot be kept.
  int64_t sample_bytes() const { return sample_bytes_; }
  int64_t needed() const;
  /// Bytes that are kept.
  int64_t memory() const { return kept_ ? needed() : 0; }
  /// CRC-32C of all that is kept, as it was read and decoded; 0 where nothing is.
  uint32_t digest() const;
  std::vector<BadSample> bad_samples() const;
  Tried tried() const { return {asked_.load(), asked_bad_.load(), known_bad_.load()}; }

 private:
  bool read(int64_t index, const SampleKey* key, std::span<const std::unique_ptr<Part::Scratch>> scratch,
            size_t part, std::byte* stored);
  bool read_all(int64_t index, const SampleKey* key, Reader& reader);
  std::byte* place(size_t part, int64_t index) const {
    return cache_[part].data() + static_cast<size_t>(index) * sizes_[part];
  }
  void keep(int threads, const std::function<void(int64_t, int64_t)>& progress);
  void keep_run(int64_t first, int64_t count, Reader& reader, RowsAhead* ahead);
  void find_first();
  [[noreturn]] void none() const;
  void note_asked(int64_t index, bool good);
  void note_bad(int64_t index, const std::string& why);

  std::shared_ptr<const Dataset> samples_;
  std::vector<std::shared_ptr<const Part>> parts_;
  std::vector<size_t> sizes_, offsets_;  // of each part's bytes, in a Reader's
  int64_t sample_bytes_ = 0;
  bool keeps_ = true, kept_ = false;
  const char* unit_;
  std::vector<AlignedBytes> cache_;  // of each part
  /// Of samples that are bad whenever they are read.
  std::vector<std::atomic<bool>> bad_;
  /// Of each sample: was it asked for (1), was it bad then (2)? Replacements do not count: damage comes in
  /// runs, and one step into it would count as all of it.
  std::vector<std::atomic<uint8_t>> met_;
  std::atomic<int64_t> asked_{0}, asked_bad_{0}, known_bad_{0};
  mutable std::mutex mutex_;
  std::map<int64_t, std::string> reasons_;
};

}  // namespace millrace::data
