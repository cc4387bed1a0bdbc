#include "task/inputs/stored_size.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include <millrace/error.h>
#include <millrace/picture.h>

#include "data/augment/augment.h"
#include "data/codecs/pictures/frame.h"
#include "data/codecs/pictures/picture_reader.h"
#include "data/codecs/pictures/stored_picture.h"
#include "data/feed/thread_times.h"
#include "data/table/contents.h"
#include "data/tools/pack/pack_picture.h"
#include "task/inputs/picture_frames.h"

namespace millrace::task {
namespace {

/// Loads pictures as a training does, by one thread.
class PictureStopwatch {
 public:
  explicit PictureStopwatch(const Settings& settings)
      : augmenter_(settings.texts("augment")),
        rule_(evaluation_frames(settings)),
        channels_(static_cast<int>(settings.integer("channels"))) {}

  /// CPU nanoseconds, −1 for a picture that cannot be loaded.
  int64_t cost(const data::StoredPicture& sample, const data::SampleKey& key) {
    const int64_t begin = times_.now().cpu;
    return load(sample, key) ? times_.now().cpu - begin : -1;
  }

 private:
  bool load(const data::StoredPicture& sample, const data::SampleKey& key) {
    if (!reader_.open(sample).empty()) return false;
    const int channels = channels_ > 0 ? channels_ : reader_.channels();
    const bool random = augmenter_.frames();
    const data::Frame frame = random ? augmenter_.frame(reader_.height(), reader_.width(), key)
                                     : rule_.frame(reader_.height(), reader_.width());
    const data::Extent extent{channels, frame.keep.height, frame.keep.width};
    planes_.resize(extent.bytes());
    if (!reader_.load(frame, channels, random, planes_.data()).empty()) return false;
    // As into the batches of a loader: what is written is in no cache.
    std::vector<uint8_t>& out = out_[next_++ % out_.size()];
    out.resize(augmenter_.result(extent).bytes());
    augmenter_.apply(extent, planes_.data(), out.data(), key, scratch_);
    return true;
  }

  data::Augmenter augmenter_;
  data::FrameRule rule_;
  int channels_;
  data::PictureReader reader_;
  data::ThreadTimes times_;
  std::vector<uint8_t> planes_, scratch_;
  std::array<std::vector<uint8_t>, 64> out_;
  size_t next_ = 0;
};

}  // namespace

StoredSize worthwhile_size(const Settings& settings, const data::Dataset& samples) {
  const data::FrameRule rule = evaluation_frames(settings);
  int side = std::max(rule.resize, rule.crop);
  if (side == 0) return {};
  // Random frames are smaller than the picture: a little more is kept, as crops of the middle have it (256
  // for 224).
  if (rule.resize == rule.crop) side = side * 8 / 7;
  data::PictureRule smaller;
  smaller.resize = side;
  const data::PictureMaker maker(smaller);
  PictureStopwatch stopwatch(settings);
  const std::string& column = settings.text("column");
  std::optional<data::Contents> contents;
  if (column.empty()) contents.emplace(samples, data::ColumnKind::picture);
  const size_t named = column.empty() ? 0 : samples.column(column);
  const auto picture = [&](int64_t i) {
    return data::stored_picture(contents ? contents->read(i) : samples.read(i, named));
  };
  std::vector<int> sides;
  int64_t now = 0, then = 0;
  constexpr int64_t most_looks = 48, enough = 300'000'000;  // nanoseconds
  const int64_t looks = std::min(most_looks, samples.count());
  for (int64_t i = 0; i < looks && now + then < enough; ++i) try {
      // From all over the source, however many there is time for.
      const int64_t place = looks == most_looks ? i * 29 % looks : i;
      const data::StoredPicture sample = picture(place * samples.count() / looks);
      data::PictureReader reader;
      std::vector<data::StoredPicture> packed;
      if (!reader.open(sample).empty() || !maker.make(sample, i, packed).empty()) continue;
      sides.push_back(std::min(reader.height(), reader.width()));
      const data::SampleKey key{1, 0, i, i};
      const int64_t before = stopwatch.cost(sample, key), after = stopwatch.cost(packed[0], key);
      if (before < 0 || after < 0) continue;
      now += before;
      then += after;
    } catch (const Error&) {  // a bad sample; others say enough
    }
  if (sides.empty() || now == 0) return {};
  std::nth_element(sides.begin(), sides.begin() + static_cast<std::ptrdiff_t>(sides.size() / 2), sides.end());
  if (sides[sides.size() / 2] <= side * 5 / 4) return {};
  return {side, static_cast<double>(then) / static_cast<double>(now)};
}

}  // namespace millrace::task
