#include "data/pictures.h"

#include "base/format.h"
#include "data/sources/remote_object.h"

namespace millrace::data {

Pictures::Pictures(std::shared_ptr<const Source> source, const LoaderOptions& options, int threads)
    : source_(std::move(source)),
      resize_(options.resize),
      channels_(options.channels),
      bad_(static_cast<size_t>(source_->count())) {
  if (resize_ < 0 || resize_ > 65535)
    fail<InputError>("data.resize = {}: wanted is a side from 1 to 65535 pixels", resize_);
  if (channels_ != 0 && channels_ != 1 && channels_ != 3)
    fail<InputError>("data.channels = {}: wanted is 1 (grey) or 3 (colour)", channels_);
  find_first();
  const auto total = static_cast<double>(extent_.bytes()) * static_cast<double>(source_->count());
  if (total <= static_cast<double>(options.cache_bytes)) fill_cache(threads, options.progress);
}

/// Decodes a sample and brings it to the size and channels wanted; false when it is bad.
bool Pictures::decode(int64_t index, Picture& picture) {
  if (bad_[index].load(std::memory_order_relaxed)) return false;
  std::string why;
  try {
    why = decode_sample(source_->read(index), picture);
  } catch (const RemoteError&) {
    throw;  // the server is away: no fault of this sample
  } catch (const Error& error) {
    why = error.what();
  }
  if (!why.empty()) {
    const std::lock_guard lock(mutex_);
    reasons_.try_emplace(index, why);
    bad_[index].store(true, std::memory_order_relaxed);
    return false;
  }
  // Colour stays colour unless grey is asked for: dropping it silently would be worse than the error that
  // follows.
  if (channels_ != picture.channels && (channels_ == 1 || picture.channels == 1) && channels_ != 0)
    picture = with_channels(picture, channels_);
  if (resize_ > 0 && (picture.height != resize_ || picture.width != resize_))
    picture = resize(picture, resize_, resize_);
  return true;
}

/// The first good picture decides on the size.
void Pictures::find_first() {
  Picture picture;
  for (int64_t i = 0; i < source_->count(); ++i) {
    if (!decode(i, picture)) continue;
    extent_ = {picture.channels, picture.height, picture.width};
    first_name_ = source_->name(i);
    return;
  }
  const std::string why = reasons_.empty() ? "it is empty" : reasons_.begin()->second;
  fail<InputError>("{}: none of its {} pictures can be decoded (the first: {}); are they JPEG files?",
                   source_->path(), source_->count(), why);
}

void Pictures::require_size(int64_t index, const Picture& picture) const {
  if (picture.height == extent_.height && picture.width == extent_.width &&
      picture.channels == extent_.channels)
    return;
  const bool sides = picture.height != extent_.height || picture.width != extent_.width;
  fail<InputError>("{} is {}, but {} is {}: all pictures must have one size; {}", source_->name(index),
                   picture.size_text(), first_name_,
                   Picture{extent_.height, extent_.width, extent_.channels, {}}.size_text(),
                   sides ? fmt::format("set data.resize = {} to bring them to one",
                                       std::min(extent_.height, extent_.width))
                         : "set data.channels = 1 (grey) or 3 (colour)");
}

void Pictures::fill_cache(int threads, const std::function<void(int64_t, int64_t)>& progress) {
  const int64_t count = source_->count();
  cache_.resize(static_cast<size_t>(count) * extent_.bytes());
  std::mutex reporting;
  std::atomic<int64_t> done{0};
  constexpr int64_t chunk = 64;
  parallel_for((count + chunk - 1) / chunk, threads, [&](int64_t block) {
    Picture picture;
    const int64_t end = std::min((block + 1) * chunk, count);
    for (int64_t i = block * chunk; i < end; ++i) {
      if (i + chunk < count) source_->will_read(i + chunk);
      if (!decode(i, picture)) continue;
      require_size(i, picture);
      to_planes(picture, &cache_[static_cast<size_t>(i) * extent_.bytes()]);
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

const uint8_t* Pictures::planes(int64_t& index, Scratch& scratch) {
  const int64_t count = source_->count();
  for (int64_t tried = 0; tried < count; ++tried, index = (index + 1) % count) {
    if (bad_[index].load(std::memory_order_relaxed)) continue;
    if (cached()) return &cache_[static_cast<size_t>(index) * extent_.bytes()];
    if (!decode(index, scratch.picture)) continue;
    require_size(index, scratch.picture);
    scratch.planes.resize(extent_.bytes());
    to_planes(scratch.picture, scratch.planes.data());
    return scratch.planes.data();
  }
  fail<InputError>("{}: no picture can be decoded any more; were the files removed?", source_->path());
}

std::vector<BadSample> Pictures::bad_samples() const {
  const std::lock_guard lock(mutex_);
  std::vector<BadSample> list;
  for (const auto& [index, why] : reasons_) list.push_back({index, source_->name(index), why});
  return list;
}

}  // namespace millrace::data
