#include "data/loader.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <mutex>
#include <system_error>
#include <thread>
#include <time.h>
#include <unistd.h>

#include "base/format.h"
#include "base/thread_pool.h"
#include "data/augment/mix.h"
#include "data/order/order.h"
#include "data/pictures/pictures.h"

namespace millrace::data {
namespace {

int thread_count(int wanted) { return wanted > 0 ? wanted : available_cpus(); }

/// Where the calling thread's time went, in nanoseconds.
class ThreadTimes {
 public:
  struct Times {
    int64_t cpu = 0, queued = 0, wall = 0;
  };
  ThreadTimes() : statistics_(::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)) {}
  ~ThreadTimes() {
    if (statistics_ >= 0) ::close(statistics_);
  }
  ThreadTimes(const ThreadTimes&) = delete;
  ThreadTimes& operator=(const ThreadTimes&) = delete;

  Times now() const {
    Times times{clock(CLOCK_THREAD_CPUTIME_ID), 0, clock(CLOCK_MONOTONIC)};
    char text[96];  // "on a CPU, in line for one, time slices"
    const ssize_t size = statistics_ < 0 ? 0 : ::pread(statistics_, text, sizeof text, 0);
    const char* const end = text + std::max<ssize_t>(size, 0);
    if (const char* second = std::find(static_cast<const char*>(text), end, ' '); second != end)
      std::from_chars(second + 1, end, times.queued);
    return times;
  }

 private:
  static int64_t clock(clockid_t which) {
    timespec time{};
    return ::clock_gettime(which, &time) == 0 ? int64_t{1000000000} * time.tv_sec + time.tv_nsec : 0;
  }
  int statistics_;
};

}  // namespace

// Batches are numbered from the last seek on. Number k lies in slot k modulo the number of slots. Threads
// claim numbers in order, each fills its batch alone, and the consumer takes them in order; the slot of the
// batch that the consumer holds is free again when it asks for the next one.
struct Loader::State {
  struct Slot {
    Batch batch;
    bool ready = false;
    std::exception_ptr error;
  };

  LoaderOptions options;
  Augmenter augmenter;
  Mixer mixer;
  Pictures pictures;
  std::unique_ptr<Order> order;
  std::vector<double> weights;  // of all samples, by the column
  bool weighted = false;
  Extent extent;  // of the batches
  int64_t samples_per_epoch = 0;
  std::atomic<int64_t> worked_pictures{0}, on_cpu{0}, queued{0}, worked{0};  // nanoseconds

  mutable std::mutex mutex;  // guards all below, but not the content of claimed slots
  std::condition_variable work, done;
  std::vector<Slot> slots;
  uint64_t claimed = 0, taken = 0;
  Cursor claim_at, take_at;
  bool stop = false;
  std::vector<std::thread> threads;

  State(std::shared_ptr<const Source> source, LoaderOptions given)
      : options(std::move(given)),
        augmenter(options.augment),
        mixer(options.mix),
        pictures(std::move(source), options, augmenter, thread_count(options.threads)) {
    if (options.batch < 1) fail<InputError>("batch = {}: a batch has at least one sample", options.batch);
    augmenter.check(pictures.extent());
    extent = augmenter.result(pictures.extent());
    make_order();
    const int64_t count = order->length();
    samples_per_epoch = options.drop_last ? count / options.batch * options.batch : count;
    if (samples_per_epoch == 0)
      fail<InputError>("{}: its {} pictures do not fill a batch of {}; make the batch smaller",
                       pictures.source().path(), count, options.batch);
    slots.resize(static_cast<size_t>(thread_count(options.threads)) + 2);
    start({options.seed, 0, 0});
  }

  ~State() { halt(); }

  void make_order() {
    const OrderText text = parse_order(options.order);
    const Source& source = pictures.source();
    Population population{source.count(), {}, source.classes(), {}};
    for (int64_t i = 0; i < source.count(); ++i) population.labels.push_back(source.label(i));
    if (const std::string column = text.column(); !column.empty()) population.values = source.numbers(column);
    order = text.kind->make(text.words, std::move(population));
    if (!options.weights.empty()) weights = source.numbers(options.weights);
    for (size_t i = 0; i < weights.size(); ++i)
      if (!(weights[i] >= 0) || !std::isfinite(weights[i]))
        fail<InputError>("{}: its {} is {}: a weight is a number from 0 on",
                         source.name(static_cast<int64_t>(i)), options.weights, weights[i]);
    weighted = !weights.empty() || text.kind == &importance_order;
  }

  void start(const Cursor& cursor) {
    claim_at = take_at = cursor;
    claimed = taken = 0;
    for (Slot& slot : slots) {
      slot.ready = false;
      slot.error = nullptr;
    }
    stop = false;
    try {
      for (int i = 0; i < thread_count(options.threads); ++i) threads.emplace_back([this] { run(); });
    } catch (const std::system_error& error) {
      halt();
      fail<IoError>(
          "the loader cannot start its threads: {}; raise the limit of processes or set fewer threads",
          error.what());
    }
  }

  void halt() {
    {
      const std::lock_guard lock(mutex);
      stop = true;
    }
    work.notify_all();
    for (std::thread& thread : threads) thread.join();
    threads.clear();
  }

  int64_t valid_at(const Cursor& cursor) const {
    return std::min(options.batch, samples_per_epoch - cursor.position);
  }

  Cursor after(Cursor cursor) const {
    cursor.position += valid_at(cursor);
    // With drop_last a restored position need not be a multiple of the batch: what is left over is dropped as
    // well.
    const int64_t least = options.drop_last ? options.batch : 1;
    if (samples_per_epoch - cursor.position < least) {
      ++cursor.epoch;
      cursor.position = 0;
    }
    return cursor;
  }

  void run() {
    Scratch scratch;
    const ThreadTimes times;
    std::unique_lock lock(mutex);
    while (true) {
      // `taken` - 1 is the batch that the consumer holds.
      work.wait(lock, [&] { return stop || claimed + 1 < taken + slots.size(); });
      if (stop) return;
      Slot& slot = slots[claimed++ % slots.size()];
      slot.batch.start = claim_at;
      claim_at = after(claim_at);
      lock.unlock();
      std::exception_ptr error;
      try {
        const ThreadTimes::Times begin = times.now();
        fill(slot.batch, scratch);
        const ThreadTimes::Times end = times.now();
        worked_pictures += slot.batch.valid;
        on_cpu += end.cpu - begin.cpu;
        queued += end.queued - begin.queued;
        worked += end.wall - begin.wall;
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      slot.error = error;
      slot.ready = true;
      done.notify_one();
    }
  }

  /// What one thread works with.
  struct Scratch {
    PictureReader reader;
    std::vector<Pick> picks;
    std::vector<uint8_t> decoded, between;
  };

  void fill(Batch& batch, Scratch& scratch) {
    const Cursor& at = batch.start;
    const size_t size = extent.bytes();
    batch.pictures.resize(static_cast<size_t>(options.batch) * size);
    batch.labels.assign(static_cast<size_t>(options.batch), 0);
    batch.indices.assign(static_cast<size_t>(options.batch), -1);
    batch.valid = valid_at(at);
    if (weighted) batch.weights.assign(static_cast<size_t>(options.batch), 0);
    scratch.picks.resize(static_cast<size_t>(batch.valid));
    order->run(at.seed, at.epoch, at.position, scratch.picks);
    for (const Pick& pick : scratch.picks) pictures.will_read(pick.index);
    scratch.decoded.resize(pictures.extent().bytes());
    for (int64_t i = 0; i < batch.valid; ++i) {
      SampleKey sample{at.seed, at.epoch, at.position + i, 0};
      const Pick& pick = scratch.picks[static_cast<size_t>(i)];
      int64_t index = pick.index;
      uint8_t* const out = &batch.pictures[static_cast<size_t>(i) * size];
      const bool direct = augmenter.nothing_to_apply();
      const uint8_t* planes = direct ? out : scratch.decoded.data();
      if (pictures.cached())
        planes = pictures.cached_planes(index);
      else
        pictures.load(index, sample, scratch.reader, direct ? out : scratch.decoded.data());
      batch.labels[i] = pictures.source().label(index);
      batch.indices[i] = sample.index = index;
      if (weighted)
        batch.weights[i] =
            static_cast<float>(pick.weight * (weights.empty() ? 1 : weights[static_cast<size_t>(index)]));
      if (planes != out) augmenter.apply(pictures.extent(), planes, out, sample, scratch.between);
    }
    if (!mixer.empty()) mix(batch, scratch);
    std::fill(batch.pictures.begin() + static_cast<int64_t>(size) * batch.valid, batch.pictures.end(),
              uint8_t{0});
  }

  void mix(Batch& batch, Scratch& scratch) {
    const float kept =
        mixer.apply(extent, batch.pictures.data(), batch.valid,
                    {batch.start.seed, batch.start.epoch, batch.start.position, 0}, scratch.between);
    batch.mix.assign(batch.labels.size(), kept);
    batch.mixed_labels = batch.labels;
    for (int64_t i = 0; i < batch.valid; ++i)
      batch.mixed_labels[i] = batch.labels[i > 0 ? i - 1 : batch.valid - 1];
  }

  const Batch& next() {
    std::unique_lock lock(mutex);
    Slot& slot = slots[taken % slots.size()];
    done.wait(lock, [&] { return slot.ready; });
    if (slot.error) std::rethrow_exception(slot.error);  // and again at the next call
    if (taken > 0) slots[(taken - 1) % slots.size()].ready = false;
    ++taken;
    take_at = after(take_at);
    work.notify_one();
    return slot.batch;
  }
};

Loader::Loader(std::shared_ptr<const Source> source, LoaderOptions options)
    : state_(std::make_unique<State>(std::move(source), std::move(options))) {}
Loader::~Loader() = default;

const Batch& Loader::next() { return state_->next(); }

Cursor Loader::cursor() const {
  const std::lock_guard lock(state_->mutex);
  return state_->take_at;
}

void Loader::seek(const Cursor& cursor) {
  const int64_t least = state_->options.drop_last ? state_->options.batch : 1;
  if (cursor.epoch < 0 || cursor.position < 0 || cursor.position > state_->samples_per_epoch)
    fail<InputError>("{}: no sample {} of epoch {} in its {} samples; was the data changed since?",
                     source().path(), cursor.position, cursor.epoch, state_->samples_per_epoch);
  state_->halt();
  const bool over = state_->samples_per_epoch - cursor.position < least;
  state_->start(over ? Cursor{cursor.seed, cursor.epoch + 1, 0} : cursor);
}

const Source& Loader::source() const { return state_->pictures.source(); }
const Extent& Loader::extent() const { return state_->extent; }
int64_t Loader::batch_size() const { return state_->options.batch; }
int64_t Loader::samples_per_epoch() const { return state_->samples_per_epoch; }
int64_t Loader::batches_per_epoch() const {
  return (state_->samples_per_epoch + state_->options.batch - 1) / state_->options.batch;
}
bool Loader::weighted() const { return state_->weighted; }
bool Loader::mixed() const { return !state_->mixer.empty(); }
int64_t Loader::cache_needed() const {
  if (state_->augmenter.frames()) return 0;
  return static_cast<int64_t>(state_->pictures.extent().bytes()) * source().count();
}
bool Loader::cached() const { return state_->pictures.cached(); }
std::vector<BadSample> Loader::bad_samples() const { return state_->pictures.bad_samples(); }
Tried Loader::tried() const { return state_->pictures.tried(); }
LoaderWork Loader::work() const {
  const auto seconds = [](const std::atomic<int64_t>& time) {
    return static_cast<double>(time.load()) * 1e-9;
  };
  return {state_->worked_pictures.load(), seconds(state_->on_cpu), seconds(state_->queued),
          seconds(state_->worked)};
}

}  // namespace millrace::data
