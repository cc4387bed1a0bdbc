#include "data/feed/pictures.h"

#include "base/format.h"
#include "base/mapped_file.h"
#include "base/parallel_for.h"
#include "data/codecs/pictures/decode.h"
#include "data/codecs/pictures/frame.h"
#include "data/codecs/pictures/picture.h"
#include "data/codecs/pictures/stored_picture.h"
#include "data/feed/batch.h"
#include "data/io/remote_object.h"

namespace millrace::data {

Pictures::Pictures(std::shared_ptr<const Dataset> samples, const LoaderOptions& options,
                   const Augmenter& augmenter, int threads)
    : samples_(std::move(samples)),
      contents_(*samples_, ColumnKind::picture),
      augmenter_(augmenter),
      rule_{options.resize, options.crop},
      channels_(options.channels),
      bad_(static_cast<size_t>(samples_->count())),
      met_(static_cast<size_t>(samples_->count())) {
  rule_.check();
  if (channels_ != 0 && channels_ != 1 && channels_ != 3)
    fail<InputError>("data.channels = {}: wanted is 1 (grey) or 3 (colour)", channels_);
  find_first();
  if (augmenter_.frames()) return;
  const auto total = static_cast<double>(extent_.bytes()) * static_cast<double>(samples_->count());
  int64_t most = options.cache_bytes;
  // One batch with the model and one ahead there must be.
  if (options.memory > 0)
    most = std::min(most, options.memory - 2 * batch_bytes(options, augmenter_.result(extent_)));
  if (total <= static_cast<double>(most)) fill_cache(threads, options.progress);
}

int Pictures::channels_for(int own) const { return channels_ == 0 ? own : channels_; }

void Pictures::note_asked(int64_t index, bool good) {
  const uint8_t met = good ? 1 : 3;
  if ((met_[index].load(std::memory_order_relaxed) & met) == met) return;
  const uint8_t before = met_[index].fetch_or(met);
  if (!(before & 1)) ++asked_;
  if (!good && !(before & 2)) ++asked_bad_;
}

void Pictures::note_bad(int64_t index, const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (reasons_.try_emplace(index, why).second) ++known_bad_;
}

Frame Pictures::frame_for(int64_t index, const SampleKey& sample, const PictureReader& reader) const {
  if (augmenter_.frames()) return augmenter_.frame(reader.height(), reader.width(), sample);
  try {
    return rule_.frame(reader.height(), reader.width());
  } catch (const InputError& error) {
    fail<InputError>("{}: {}", samples_->name(index), error.what());
  }
}

/// Decodes a sample; "" or why it is bad. InputError when it is good but of another size than the others.
std::string Pictures::decode_it(int64_t index, const SampleKey& sample, PictureReader& reader,
                                uint8_t* planes, StoredPicture& stored) {
  try {
    stored = stored_picture(contents_.read(index));
  } catch (const RemoteError&) {
    throw;  // the server is away: no fault of this sample
  } catch (const Error& error) {
    return error.what();
  }
  if (std::string why = reader.open(stored); !why.empty()) return why;
  const Frame frame = frame_for(index, sample, reader);
  const Picture result{frame.keep.height, frame.keep.width, channels_for(reader.channels()), {}};
  if (result.height != extent_.height || result.width != extent_.width ||
      result.channels != extent_.channels) {
    const bool sides = result.height != extent_.height || result.width != extent_.width;
    const std::string difference =
        fmt::format("{} is {}, but {} is {}: all pictures must have one size; {}", samples_->name(index),
                    result.size_text(), first_name_,
                    Picture{extent_.height, extent_.width, extent_.channels, {}}.size_text(),
                    sides ? fmt::format("set data.resize = {} to bring them to one",
                                        std::min(extent_.height, extent_.width))
                          : "set data.channels = 1 (grey) or 3 (colour)");
    // A bad picture need not fit: its size may be a part of what is damaged.
    std::vector<uint8_t> ignored(result.channels * size_t(result.height) * result.width);
    if (std::string why = reader.load(frame, result.channels, false, ignored.data()); !why.empty())
      return why;
    throw InputError(difference);
  }
  return reader.load(frame, extent_.channels, augmenter_.frames(), planes);
}

bool Pictures::decode(int64_t index, const SampleKey& sample, PictureReader& reader, uint8_t* planes) {
  // A random frame may lie beside the damage: then only this sample of this epoch is replaced, whatever was met before, so
  // that a resumed training sees the same.
  const bool always = !augmenter_.frames();
  if (always && bad_[index].load(std::memory_order_relaxed)) return false;
  StoredPicture stored;
  const std::string why = decode_it(index, sample, reader, planes, stored);
  if (why.empty()) return true;
  require_mapped_file(stored.bytes.data());  // not the picture's fault
  note_bad(index, why);
  if (always) bad_[index].store(true, std::memory_order_relaxed);
  return false;
}

/// The first good picture decides on the size.
void Pictures::find_first() {
  PictureReader reader;
  std::vector<uint8_t> planes;
  std::string first_reason = "it is empty";
  for (int64_t i = 0; i < samples_->count(); ++i) {
    std::string why;
    try {
      const StoredPicture stored = stored_picture(contents_.read(i));
      why = reader.open(stored);
      if (why.empty()) {
        const int channels = channels_for(reader.channels());
        Frame frame = whole_frame(reader.height(), reader.width(), reader.height(), reader.width());
        if (!augmenter_.frames()) frame = frame_for(i, {}, reader);
        planes.resize(static_cast<size_t>(channels) * static_cast<size_t>(frame.keep.height) *
                      static_cast<size_t>(frame.keep.width));
        why = reader.load(frame, channels, false, planes.data());
        extent_ = {channels, frame.keep.height, frame.keep.width};
      }
    } catch (const IoError& error) {
      why = error.what();
    }
    if (why.empty()) {
      if (augmenter_.frames()) extent_ = augmenter_.framed(extent_);
      first_name_ = samples_->name(i);
      return;
    }
    if (i == 0) first_reason = why;
    note_bad(i, why);
    bad_[i].store(true, std::memory_order_relaxed);
  }
  fail<InputError>("{}: none of its {} pictures can be decoded (the first: {}); are they {} files?",
                   samples_->path(), samples_->count(), first_reason, picture_kinds());
}

void Pictures::fill_cache(int threads, const std::function<void(int64_t, int64_t)>& progress) {
  const int64_t count = samples_->count();
  cache_.resize(static_cast<size_t>(count) * extent_.bytes());
  std::mutex reporting;
  std::atomic<int64_t> done{0};
  constexpr int64_t chunk = 64;
  parallel_for((count + chunk - 1) / chunk, threads, [&](int64_t block) {
    PictureReader reader;
    const int64_t end = std::min((block + 1) * chunk, count);
    for (int64_t i = block * chunk; i < end; ++i) {
      if (i + chunk < count) samples_->will_read(i + chunk);
      note_asked(i, decode(i, {}, reader, &cache_[static_cast<size_t>(i) * extent_.bytes()]));
    }
    const int64_t now = done += end - block * chunk;
    // Whoever finds another reporting leaves it at that; the last report is made below.
    if (progress && reporting.try_lock()) {
      progress(now, count);
      reporting.unlock();
    }
  });
  if (progress) progress(count, count);
}

const uint8_t* Pictures::cached_planes(int64_t& index) const {
  const int64_t count = samples_->count();
  for (int64_t tried = 0; tried < count; ++tried, index = (index + 1) % count)
    if (!bad_[index].load(std::memory_order_relaxed))
      return &cache_[static_cast<size_t>(index) * extent_.bytes()];
  fail<InternalError>("{}: no picture is cached", samples_->path());
}

void Pictures::load(int64_t& index, SampleKey sample, PictureReader& reader, uint8_t* planes) {
  const int64_t count = samples_->count();
  for (int64_t tried = 0; tried < count; ++tried, index = (index + 1) % count) {
    sample.index = index;
    const bool good = decode(index, sample, reader, planes);
    if (tried == 0) note_asked(index, good);
    if (good) return;
  }
  fail<InputError>("{}: no picture can be decoded any more; were the files removed?", samples_->path());
}

std::vector<BadSample> Pictures::bad_samples() const {
  const std::lock_guard lock(mutex_);
  std::vector<BadSample> list;
  for (const auto& [index, why] : reasons_) list.push_back({index, samples_->name(index), why});
  return list;
}

}  // namespace millrace::data
