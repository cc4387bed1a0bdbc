// The pictures of a source, all of one size: decoded on demand or once, bad ones replaced. Part of the
// loader.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "data/loader.h"

namespace millrace::data {

/// Thread-safe.
class Pictures {
 public:
  Pictures(std::shared_ptr<const Source> source, const LoaderOptions& options, int threads);

  /// What one thread needs to decode.
  struct Scratch {
    Picture picture;
    std::vector<uint8_t> planes;
  };
  /// Planes (CHW) of sample `index` or, when it is bad, of the next good one; `index` becomes the one taken.
  /// The pointer is valid until the next call with this scratch.
  const uint8_t* planes(int64_t& index, Scratch& scratch);

  /// Says that a sample will be asked for soon.
  void will_read(int64_t index) const {
    if (cache_.empty()) source_->will_read(index);
  }

  const Source& source() const { return *source_; }
  const Extent& extent() const { return extent_; }
  bool cached() const { return !cache_.empty(); }
  std::vector<BadSample> bad_samples() const;

 private:
  bool decode(int64_t index, Picture& picture);
  void require_size(int64_t index, const Picture& picture) const;
  void find_first();
  void fill_cache(int threads, const std::function<void(int64_t, int64_t)>& progress);

  std::shared_ptr<const Source> source_;
  int resize_, channels_;
  Extent extent_;
  std::string first_name_;
  std::vector<uint8_t> cache_;
  std::vector<std::atomic<bool>> bad_;
  mutable std::mutex mutex_;
  std::map<int64_t, std::string> reasons_;
};

}  // namespace millrace::data
