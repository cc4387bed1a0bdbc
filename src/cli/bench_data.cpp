#include "cli/bench_data.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <fmt/core.h>
#include <optional>
#include <thread>

#include <millrace/picture.h>

#include "base/format.h"
#include "base/process_use.h"
#include "base/seconds_since.h"
#include "base/thread_pool.h"
#include "base/words.h"
#include "data/augment/augment.h"
#include "data/codecs/pictures/frame.h"
#include "data/codecs/pictures/picture_reader.h"
#include "data/codecs/pictures/stored_picture.h"
#include "data/feed/array_part.h"
#include "data/feed/picture_part.h"
#include "data/feed/rows_ahead.h"
#include "data/feed/sample_feed.h"
#include "data/formats/open_dataset.h"
#include "data/order/permutation.h"
#include "data/table/contents.h"
#include "data/table/labels.h"

namespace millrace::cli {
namespace {

using Clock = std::chrono::steady_clock;

class Stopwatch {
 public:
  double seconds() const { return seconds_since(start_); }
  double cpu() const { return process_cpu_seconds() - cpu_; }

 private:
  Clock::time_point start_ = Clock::now();
  double cpu_ = process_cpu_seconds();
};

/// Pictures and the time they took. What others take of a busy machine lengthens the time, but not that of
/// the CPU.
struct MeasuredPictures {
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
  return split(options.augment);
}

/// Decoding and resizing alone: the frames that the loader takes, of the same pictures in the same order,
/// each thread the next one. It does no work that the loader could save: memory is used again, no batch is
/// made, nothing locked or handed on.
class DecodingLimit {
 public:
  DecodingLimit(std::shared_ptr<const data::Dataset> samples, const data::Augmenter& augmenter,
                const data::Extent& extent, int threads)
      : samples_(std::move(samples)),
        pictures_(*samples_, data::ColumnKind::picture),
        augmenter_(augmenter),
        extent_(extent),
        threads_(threads) {}

  /// Pictures in so many seconds, from this place of the first epoch on.
  int64_t run(double seconds, int64_t first) const {
    // What is far away is asked for as early as the loader does.
    std::optional<data::RowsAhead> ahead;
    if (data::RemoteCache* const cache = data::remote_cache_of(*samples_)) {
      ahead.emplace(*samples_, *cache);
      ahead->start([this, place = first](std::vector<int64_t>& samples) mutable {
        samples.push_back(sample_at(place++));
        return true;
      });
    }
    std::atomic<int64_t> next{first}, done{0};
    const Clock::time_point end =
        Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    std::vector<std::thread> threads;
    for (int i = 0; i < threads_; ++i)
      threads.emplace_back([&] {
        data::PictureReader reader;
        std::vector<uint8_t> planes(extent_.bytes());
        while (Clock::now() < end) {
          const int64_t place = next++;
          if (ahead) ahead->reach(static_cast<uint64_t>(place - first));
          decode(sample_at(place), {1, place / samples_->count(), place % samples_->count(), 0}, reader,
                 planes);
          if (ahead) ahead->done(static_cast<uint64_t>(place - first));
          ++done;
        }
      });
    for (std::thread& thread : threads) thread.join();
    return done;
  }

 private:
  int64_t sample_at(int64_t place) const {
    const int64_t count = samples_->count();
    return data::Permutation(count, 1, place / count)(place % count);
  }

  void decode(int64_t index, const data::SampleKey& key, data::PictureReader& reader,
              std::vector<uint8_t>& planes) const {
    const data::StoredPicture sample = data::stored_picture(pictures_.read(index));
    if (!reader.open(sample).empty()) return;
    data::Frame frame = data::whole_frame(reader.height(), reader.width(), reader.height(), reader.width());
    if (augmenter_.frames()) frame = augmenter_.frame(reader.height(), reader.width(), key);
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

/// The class of each sample as a part: labels i64 [batch].
std::shared_ptr<const data::Part> class_part(const data::Dataset& samples, size_t column) {
  const data::ColumnPlace place(samples, samples.columns()[column].name);
  return std::make_shared<data::ArrayPart>(
      std::vector<data::Field>{{"labels", {i64, {Dim::named("batch")}}}},
      [place](const data::Dataset& from, int64_t first, int64_t count, std::span<std::byte* const> rows) {
        const size_t at = place.in(from);
        for (int64_t i = 0; i < count; ++i) {
          const auto label = std::get<int64_t>(from.read(first + i, at));
          std::memcpy(rows[0] + i * static_cast<int64_t>(sizeof label), &label, sizeof label);
        }
      });
}

/// What frameworks do before the model: float32, less the mean, divided by the deviation.
void normalise(std::span<const std::byte> pictures, std::vector<float>& out) {
  const float mean = 120, factor = 1 / 58.0F;
  const auto* const from = reinterpret_cast<const uint8_t*>(pictures.data());
  out.resize(pictures.size());
  for (size_t i = 0; i < pictures.size(); ++i) out[i] = (static_cast<float>(from[i]) - mean) * factor;
}

}  // namespace

int bench_data(const BenchDataOptions& options) {
  const int threads = available_cpus();
  std::shared_ptr<const data::Dataset> source = data::open_dataset(options.source);
  if (data::find_label(*source)) source = data::labelled(std::move(source), data::ColumnKind::picture);
  const std::vector<std::string> augment = augmentations(options);
  const auto pictures = data::picture_part(*source, {.augment = augment, .channels = 3});
  std::vector<data::NamedPart> parts = {{"", pictures}};
  if (const auto column = source->class_column()) parts.push_back({"", class_part(*source, *column), true});
  data::FeedOptions given;
  given.batch = std::min(options.batch, source->count());
  given.threads = threads;
  given.drop_last = true;
  given.cache_bytes = options.cached ? int64_t{8} << 30 : 0;
  given.unit = "pictures";
  const auto open = [&] {
    return data::sample_feed(source, parts, data::sample_rows(*source, {.order = "shuffle"}), given);
  };
  std::unique_ptr<data::Feed> feed = open();
  const bool decodes = !feed->cached();
  const size_t field = feed->field("pictures");
  const data::Augmenter augmenter(augment);
  const DecodingLimit limit(source, augmenter, pictures->stored_extent(), threads);

  std::vector<float> floats;
  constexpr int rounds = 4;
  const int not_counted = threads + 3;  // batches that may be ready when a round begins
  MeasuredPictures loaded, alone;
  size_t bad = 0;
  for (int round = 0; round < rounds; ++round) {
    if (decodes) {
      feed.reset();  // its threads would go on working ahead
      const Stopwatch watch;
      alone.add(limit.run(options.seconds / rounds, not_counted * given.batch), watch);
      feed = open();
    }
    for (int i = 0; i < not_counted; ++i) feed->next();
    const Stopwatch watch;
    int64_t done = 0;
    do {
      const data::FeedBatch& batch = feed->next();
      done += batch.valid;
      if (options.floats) normalise(batch.arrays[field], floats);
    } while (watch.seconds() < options.seconds / rounds);
    loaded.add(done, watch);
    bad = std::max(bad, feed->bad_samples().size());
  }
  if (decodes)
    fmt::print(
        "decoding and resizing alone, {} threads: {}; the loader reaches {:.0f} % ({:.0f} % by CPU time)\n",
        threads, alone.text(), 100 * loaded.rate() / alone.rate(),
        100 * loaded.cpu_rate() / alone.cpu_rate());
  fmt::print("the loader, {} threads: {}\n", threads, loaded.text());
  if (bad > 0) fmt::print("{} pictures cannot be read\n", bad);
  fmt::print("{} {} {}x{} batch {} pictures/s {:.1f}\n", options.source,
             augment.empty() ? "plain" : fmt::format("{}", fmt::join(augment, ", ")),
             pictures->extent().width, pictures->extent().height, given.batch, loaded.rate());
  return 0;
}

}  // namespace millrace::cli
