// The pictures of a data set, brought to one size: decoded on demand or once, bad ones replaced. Part of the loader.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "data/augment/augment.h"
#include "data/codecs/pictures/extent.h"
#include "data/codecs/pictures/frame.h"
#include "data/codecs/pictures/picture_reader.h"
#include "data/codecs/pictures/stored_picture.h"
#include "data/feed/loader_options.h"
#include "data/feed/loader_work.h"
#include "data/table/contents.h"
#include "data/table/dataset.h"

namespace millrace::data {

/// Thread-safe.
class Pictures {
 public:
  /// Where `augmenter` begins with a random frame, that one is taken of each picture, which is then decoded anew every time
  /// and may have any size; else frames are those of the options' rule.
  Pictures(std::shared_ptr<const Dataset> samples, const LoaderOptions& options, const Augmenter& augmenter,
           int threads);

  /// The decoded picture `index` or, when it is bad, the next good one; `index` becomes the one taken. cached() only.
  const uint8_t* cached_planes(int64_t& index) const;
  /// The same, decoded into `planes` (extent().bytes()). `sample` names the random frame; its index is ignored.
  void load(int64_t& index, SampleKey sample, PictureReader& reader, uint8_t* planes);

  /// Says that a sample will be asked for soon.
  void will_read(int64_t index) const {
    if (cache_.empty()) samples_->will_read(index);
  }

  const Dataset& samples() const { return *samples_; }
  /// Of the pictures after their frame.
  const Extent& extent() const { return extent_; }
  bool cached() const { return !cache_.empty(); }
  std::vector<BadSample> bad_samples() const;
  Tried tried() const { return {asked_.load(), asked_bad_.load(), known_bad_.load()}; }

 private:
  int channels_for(int own) const;
  bool decode(int64_t index, const SampleKey& sample, PictureReader& reader, uint8_t* planes);
  /// `stored`: its bytes, where they could be read.
  std::string decode_it(int64_t index, const SampleKey& sample, PictureReader& reader, uint8_t* planes,
                        StoredPicture& stored);
  Frame frame_for(int64_t index, const SampleKey& sample, const PictureReader& reader) const;
  void note_asked(int64_t index, bool good);
  void note_bad(int64_t index, const std::string& why);
  void find_first();
  void fill_cache(int threads, const std::function<void(int64_t, int64_t)>& progress);

  std::shared_ptr<const Dataset> samples_;
  Contents contents_;
  const Augmenter& augmenter_;
  FrameRule rule_;
  int channels_;
  Extent extent_;
  std::string first_name_;
  std::vector<uint8_t> cache_;
  /// Of pictures that are bad whatever is wanted of them.
  std::vector<std::atomic<bool>> bad_;
  /// Of each picture: was it asked for (1), was it bad then (2)? Replacements do not count: damage comes in runs, and one
  /// step into it would count as all of it.
  std::vector<std::atomic<uint8_t>> met_;
  std::atomic<int64_t> asked_{0}, asked_bad_{0}, known_bad_{0};
  mutable std::mutex mutex_;
  std::map<int64_t, std::string> reasons_;
};

}  // namespace millrace::data
