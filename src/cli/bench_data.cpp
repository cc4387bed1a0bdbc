#include "cli/bench_data.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fmt/core.h>
#include <thread>

#include "base/format.h"
#include "base/thread_pool.h"
#include "data/augment/augment.h"
#include "data/codecs/pictures/extent.h"
#include "data/codecs/pictures/frame.h"
#include "data/codecs/pictures/picture_reader.h"
#include "data/codecs/pictures/stored_picture.h"
#include "data/feed/loader.h"
#include "data/feed/loader_options.h"
#include "data/formats/open_dataset.h"
#include "data/order/permutation.h"
#include "data/table/contents.h"

namespace millrace::cli {
namespace {

using Clock = std::chrono::steady_clock;

/// Of all threads of the process, in seconds.
double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  double cpu() const { return cpu_seconds() - cpu_; }

 private:
  Clock::time_point start_ = Clock::now();
  double cpu_ = cpu_seconds();
};

/// Pictures and the time they took. What others take of a busy machine lengthens the time, but not that of the CPU.
struct Measured {
  int64_t pictures = 0;
  double seconds = 0, cpu = 0;
  void add(int64_t count, const Stopwatch& watch) {
    pictures += count;
    seconds += watch.seconds();
    cpu += watch.cpu();
  }
  double rate() const { return static_cast<double>(pictures) / seconds; }
  double cpu_rate() const { return static_cast<double>(pictures) / cpu; }
  std::string text() const {
    return fmt::format("{:.0f} pictures/s, {:.1f} µs of CPU time each", rate(), 1e6 / cpu_rate());
  }
};

std::vector<std::string> augmentations(const BenchDataOptions& options) {
  if (options.plain) return {};
  if (options.augment.empty()) return {fmt::format("random-resized-crop {}", options.size), "flip"};
  std::vector<std::string> list;
  for (size_t at = 0; at <= options.augment.size();) {
    const size_t comma = std::min(options.augment.find(',', at), options.augment.size());
    list.push_back(options.augment.substr(at, comma - at));
    at = comma + 1;
  }
  return list;
}

/// Decoding and resizing alone: the frames that the loader takes, each thread for itself, nothing handed on.
class Limit {
 public:
  Limit(std::shared_ptr<const data::Dataset> samples, const data::Augmenter& augmenter,
        const data::Extent& extent, int threads)
      : samples_(std::move(samples)),
        pictures_(*samples_, data::ColumnKind::picture),
        augmenter_(augmenter),
        extent_(extent),
        threads_(threads) {}

  /// Pictures in so many seconds.
  int64_t run(double seconds) {
    std::atomic<int64_t> done{0};
    const Stopwatch watch;
    std::vector<std::thread> threads;
    for (int i = 0; i < threads_; ++i)
      threads.emplace_back([&, i] {
        data::PictureReader reader;
        std::vector<uint8_t> planes(extent_.bytes());
        int64_t count = 0;
        // Threads begin at places of their own, so that they do not decode the same pictures.
        for (int64_t at = samples_->count() * i / threads_; watch.seconds() < seconds; ++at, ++count)
          decode(at, reader, planes);
        done += count;
      });
    for (std::thread& thread : threads) thread.join();
    return done;
  }

 private:
  void decode(int64_t number, data::PictureReader& reader, std::vector<uint8_t>& planes) const {
    const int64_t epoch = number / samples_->count(), position = number % samples_->count();
    const data::Permutation order(samples_->count(), 1, epoch);
    const data::StoredPicture sample = data::stored_picture(pictures_.read(order(position)));
    if (!reader.open(sample).empty()) return;
    data::Frame frame = data::whole_frame(reader.height(), reader.width(), reader.height(), reader.width());
    if (augmenter_.frames())
      frame = augmenter_.frame(reader.height(), reader.width(), {1, epoch, position, 0});
    if (static_cast<size_t>(frame.keep.height) * frame.keep.width != extent_.plane()) return;
    // A picture that is damaged costs its time as well.
    [[maybe_unused]] const std::string why =
        reader.load(frame, extent_.channels, augmenter_.frames(), planes.data());
  }

  std::shared_ptr<const data::Dataset> samples_;
  data::Contents pictures_;
  const data::Augmenter& augmenter_;
  data::Extent extent_;
  int threads_;
};

/// What frameworks do before the model: float32, less the mean, divided by the deviation.
void normalise(const data::Batch& batch, const data::Extent& extent, std::vector<float>& out) {
  const auto plane = static_cast<int64_t>(extent.plane());
  out.resize(batch.pictures.size());
  for (int64_t p = 0; p < static_cast<int64_t>(batch.pictures.size()) / plane; ++p) {
    const float mean = 120, factor = 1 / 58.0F;
    const uint8_t* from = batch.pictures.data() + p * plane;
    float* to = out.data() + p * plane;
    for (int64_t i = 0; i < plane; ++i) to[i] = (static_cast<float>(from[i]) - mean) * factor;
  }
}

}  // namespace

int bench_data(const BenchDataOptions& options) {
  const int threads = available_cpus();
  const std::shared_ptr<const data::Dataset> source = data::open_dataset(options.source);
  data::LoaderOptions given;
  given.batch = std::min(options.batch, source->count());
  given.threads = threads;
  given.order = "shuffle";
  given.drop_last = true;
  given.channels = 3;
  given.augment = augmentations(options);
  given.cache_bytes = options.cached ? int64_t{8} << 30 : 0;
  const data::Augmenter augmenter(given.augment);
  auto loader = std::make_unique<data::Loader>(source, given);
  const bool decodes = !loader->cached();
  const data::Extent extent = loader->extent();
  // Other augmentations keep the size of what is decoded.
  Limit limit(source, augmenter, extent, threads);

  std::vector<float> floats;
  constexpr int rounds = 4;
  Measured loaded, alone;
  size_t bad = 0;
  for (int round = 0; round < rounds; ++round) {
    if (decodes) {
      loader.reset();  // its threads would go on working ahead
      const Stopwatch watch;
      alone.add(limit.run(options.seconds / rounds), watch);
      loader = std::make_unique<data::Loader>(source, given);
    }
    // Batches that were ready are not counted.
    for (int i = 0; i < threads + 3; ++i) loader->next();
    const Stopwatch watch;
    int64_t pictures = 0;
    do {
      const data::Batch& batch = loader->next();
      pictures += batch.valid;
      if (options.floats) normalise(batch, extent, floats);
    } while (watch.seconds() < options.seconds / rounds);
    loaded.add(pictures, watch);
    bad = std::max(bad, loader->bad_samples().size());
  }
  if (decodes)
    fmt::print(
        "decoding and resizing alone, {} threads: {}; the loader reaches {:.0f} % ({:.0f} % by CPU time)\n",
        threads, alone.text(), 100 * loaded.rate() / alone.rate(),
        100 * loaded.cpu_rate() / alone.cpu_rate());
  fmt::print("the loader, {} threads: {}\n", threads, loaded.text());
  if (bad > 0) fmt::print("{} pictures cannot be read\n", bad);
  fmt::print("{} {} {}x{} batch {} pictures/s {:.1f}\n", options.source,
             given.augment.empty() ? "plain" : fmt::format("{}", fmt::join(given.augment, ", ")),
             extent.width, extent.height, given.batch, loaded.rate());
  return 0;
}

}  // namespace millrace::cli
