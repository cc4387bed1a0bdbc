// What is behind a Loader: one for data sets (loader.cpp), one for streams (streams/stream_loader.h).
#pragma once

#include <atomic>
#include <span>
#include <vector>

#include "data/augment/augment.h"
#include "data/augment/mix.h"
#include "data/codecs/pictures/extent.h"
#include "data/feed/batch.h"
#include "data/feed/loader_work.h"
#include "data/feed/thread_times.h"
#include "data/table/dataset.h"

namespace millrace::data {

/// The members are those of Loader.
struct LoaderState {
  virtual ~LoaderState() = default;
  virtual const Batch& next() = 0;
  virtual bool ready(double seconds) = 0;
  virtual Cursor cursor() const = 0;
  virtual void seek(const Cursor& cursor) = 0;
  virtual void skip(int64_t batches) = 0;
  virtual const Dataset& samples() const = 0;
  virtual const std::string& path() const = 0;
  virtual const std::vector<std::string>& classes() const = 0;
  virtual const Extent& extent() const = 0;
  virtual int64_t batch_size() const = 0;
  virtual int64_t samples_per_epoch() const = 0;
  virtual int64_t batches_per_epoch() const = 0;
  virtual bool streamed() const { return false; }
  virtual bool cached() const { return false; }
  virtual bool weighted() const { return false; }
  virtual bool mixed() const = 0;
  virtual int64_t cache_needed() const { return 0; }
  virtual int64_t memory() const { return 0; }
  virtual int64_t memory_used() const { return memory(); }
  virtual std::vector<BadSample> bad_samples() const = 0;
  virtual Tried tried() const = 0;
  virtual void set_shares(std::span<const double> shares) = 0;
  virtual std::vector<uint8_t> first_pictures(int64_t most) = 0;

  /// Counts the work of threads.
  struct Worked {
    std::atomic<int64_t> pictures{0}, on_cpu{0}, queued{0}, wall{0};  // nanoseconds
    void add(int64_t count, const ThreadTimes::Times& begin, const ThreadTimes::Times& end) {
      pictures += count;
      on_cpu += end.cpu - begin.cpu;
      queued += end.queued - begin.queued;
      wall += end.wall - begin.wall;
    }
  };
  Worked worked;
};

/// Mixes the samples of a batch (LoaderOptions::mix); `key`: what the draw depends on.
inline void mix_batch(const Mixer& mixer, const Extent& extent, Batch& batch, const SampleKey& key,
                      std::vector<uint8_t>& scratch) {
  const float kept = mixer.apply(extent, batch.pictures.data(), batch.valid, key, scratch);
  batch.mix.assign(batch.labels.size(), kept);
  batch.mixed_labels = batch.labels;
  for (int64_t i = 0; i < batch.valid; ++i)
    batch.mixed_labels[i] = batch.labels[i > 0 ? i - 1 : batch.valid - 1];
}

}  // namespace millrace::data
