#include "data/feed/loader.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <numeric>
#include <system_error>
#include <thread>

#include "base/format.h"
#include "base/mapped_file.h"
#include "base/memory_nodes.h"
#include "base/thread_pool.h"
#include "data/augment/augment.h"
#include "data/codecs/pictures/picture_reader.h"
#include "data/feed/appetite.h"
#include "data/feed/loader_state.h"
#include "data/feed/pictures.h"
#include "data/order/mixture.h"
#include "data/order/order.h"
#include "data/table/labels.h"

namespace millrace::data {
namespace {

/// Samples whose classes are numbers, where they have any.
std::shared_ptr<const Dataset> with_classes(std::shared_ptr<const Dataset> samples) {
  if (samples->class_column()) return samples;
  const auto column = find_label(*samples);
  return column ? numbered(std::move(samples), *column) : samples;
}

int thread_count(int wanted) { return wanted > 0 ? wanted : available_cpus(); }

// Batches are numbered from the last seek on. Number k lies in slot k modulo the number of slots. Threads
// claim numbers in order, each fills its batch alone, and the consumer takes them in order; the slot of the
// batch that the consumer holds is free again when it asks for the next one. It takes a batch that is ready without a lock;
// threads sleep at `bell`, which rings once for each slot that becomes free, those that are not wanted (appetite.h) at `more`.
struct Indexed final : LoaderState {
  struct Slot {
    Batch batch;
    std::atomic<bool> ready{false};
    std::exception_ptr error;
  };

  LoaderOptions options;
  Augmenter augmenter;
  Mixer mixer;
  Pictures pictures;
  Labels labels{pictures.samples()};
  std::unique_ptr<Order> order;
  std::vector<double> weights;  // of all samples, by the column
  bool has_weights = false;
  std::unique_ptr<Mixture> mixture;  // instead of an order
  Extent result;                     // of the batches
  int64_t epoch_length = 0;
  int64_t together = 0;  // samples of a batch of all ranks

  std::vector<Slot> slots;
  std::atomic<uint64_t> taken{0};
  std::atomic<size_t> filled{0};  // slots that are ready
  std::atomic<uint32_t> bell{0}, more{0};
  std::atomic<bool> stop{false};
  std::unique_ptr<Appetite> appetite;
  Cursor take_at;    // the consumer's
  std::mutex mutex;  // guards what follows, and is held where a slot becomes ready
  std::condition_variable done;
  uint64_t claimed = 0;
  Cursor claim_at;
  std::vector<std::thread> threads;

  Indexed(std::shared_ptr<const Dataset> samples, LoaderOptions given)
      : options(std::move(given)),
        augmenter(options.augment),
        mixer(options.mix),
        pictures(with_classes(std::move(samples)), options, augmenter, thread_count(options.threads)) {
    if (options.batch < 1) fail<InputError>("batch = {}: a batch has at least one sample", options.batch);
    if (options.ranks < 1 || options.rank < 0 || options.rank >= options.ranks)
      fail<InputError>("rank {} of {}: ranks are counted from 0 to one less than there are", options.rank,
                       options.ranks);
    together = options.batch * options.ranks;
    augmenter.check(pictures.extent());
    result = augmenter.result(pictures.extent());
    make_order();
    const int64_t count = mixture ? mixture->length() : order->length();
    epoch_length = options.drop_last ? count / together * together : count;
    if (epoch_length == 0)
      fail<InputError>("{}: its {} pictures do not fill a batch of {}; make the batch smaller", path(), count,
                       together);
    slots = std::vector<Slot>(slots_wanted());
    start({options.seed, 0, 0});
  }

  ~Indexed() override { halt(); }

  int64_t cache_used() const { return pictures.cached() ? cache_needed() : 0; }

  size_t slots_wanted() const {
    const int64_t most = thread_count(options.threads) + 2, each = batch_bytes(options, result);
    if (options.memory <= 0) return static_cast<size_t>(most);
    const int64_t fit = (options.memory - cache_used()) / each;
    if (fit < 2)
      fail<InputError>(
          "{}: data.memory leaves {:.1f} MB for pictures, and two batches of {} take {:.1f} MB: raise it, or "
          "make "
          "the batch smaller",
          path(), static_cast<double>(options.memory - cache_used()) * 1e-6, options.batch,
          static_cast<double>(2 * each) * 1e-6);
    return static_cast<size_t>(std::min(most, fit));
  }

  int64_t memory() const override {
    return cache_used() + static_cast<int64_t>(slots.size()) * batch_bytes(options, result);
  }

  void make_order() {
    const OrderText text = parse_order(options.order);
    const Dataset& whole = pictures.samples();
    std::vector<double> values;
    if (const std::string column = text.column(); !column.empty()) values = numbers_of(whole, column);
    const auto order_of = [&](int64_t first, int64_t count) {
      Population population{count, {}, labels.names(), {}};
      for (int64_t i = first; i < first + count && labels.there(); ++i)
        population.labels.push_back(labels[i]);
      if (!values.empty()) population.values.assign(values.begin() + first, values.begin() + first + count);
      return text.kind->make(text.words, std::move(population));
    };
    if (options.parts.empty()) {
      order = order_of(0, whole.count());
    } else {
      std::vector<int64_t> first;
      std::vector<std::unique_ptr<Order>> orders;
      int64_t at = 0;
      for (const int64_t count : options.parts) {
        orders.push_back(order_of(at, count));
        first.push_back(std::exchange(at, at + count));
      }
      mixture = std::make_unique<Mixture>(std::move(first), std::move(orders), options.shares);
    }
    const std::string& column = options.sample_weight;
    if (!column.empty()) weights = numbers_of(whole, column);
    for (size_t i = 0; i < weights.size(); ++i)
      if (!(weights[i] >= 0) || !std::isfinite(weights[i]))
        fail<InputError>("{}: its {} is {}: a weight is a number from 0 on",
                         whole.name(static_cast<int64_t>(i)), column, weights[i]);
    has_weights = !weights.empty() || text.kind == &importance_order;
  }

  void start(Cursor cursor) {
    complete(cursor);
    claim_at = take_at = std::move(cursor);
    claimed = 0;
    taken = 0;
    filled = 0;
    for (Slot& slot : slots) {
      slot.ready = false;
      slot.error = nullptr;
    }
    stop = false;
    const int count = thread_count(options.threads);
    appetite = std::make_unique<Appetite>(count);
    try {
      for (int i = 0; i < count; ++i) threads.emplace_back([this, i] { run(i); });
    } catch (const std::system_error& error) {
      halt();
      fail<IoError>(
          "the loader cannot start its threads: {}; raise the limit of processes or set fewer threads",
          error.what());
    }
  }

  void halt() {
    stop = true;
    for (std::atomic<uint32_t>* sleep : {&bell, &more}) {
      ++*sleep;
      sleep->notify_all();
    }
    for (std::thread& thread : threads) thread.join();
    threads.clear();
  }

  /// Samples of all ranks together.
  int64_t valid_at(const Cursor& cursor) const { return std::min(together, epoch_length - cursor.position); }
  /// With drop_last a restored position need not be a multiple of the batch: what is left over is dropped as well.
  bool over(const Cursor& cursor) const {
    return epoch_length - cursor.position < (options.drop_last ? together : 1);
  }

  Cursor after(Cursor cursor) const {
    const int64_t count = valid_at(cursor);
    if (mixture) mixture->skip(cursor.seed, drawn(cursor), count);
    cursor.position += count;
    if (over(cursor)) {
      ++cursor.epoch;
      cursor.position = 0;
    }
    return cursor;
  }

  static constexpr int64_t mixture_kind = 1, mixture_version = 1;
  static std::span<int64_t> drawn(Cursor& cursor) { return std::span(cursor.state).subspan(2); }
  /// What a mixture has drawn up to a place, when the cursor does not say: by the shares of now.
  void complete(Cursor& cursor) const {
    if (!mixture) {
      cursor.state.clear();
      return;
    }
    if (cursor.state.empty()) {
      cursor.state.assign(2 + mixture->sources(), 0);
      cursor.state[0] = mixture_kind;
      cursor.state[1] = mixture_version;
      mixture->skip(cursor.seed, drawn(cursor), cursor.epoch * epoch_length + cursor.position);
    }
    const auto& state = cursor.state;
    if (state.size() != 2 + mixture->sources() || state[0] != mixture_kind || state[1] != mixture_version ||
        std::any_of(state.begin() + 2, state.end(), [](int64_t count) { return count < 0; }))
      fail<InputError>("{}: the place to go on from is none of these {} sources; is the recipe another?",
                       path(), mixture->sources());
  }

  /// The next slot to fill; null where none is free.
  Slot* claim() {
    const std::lock_guard lock(mutex);
    // `taken` - 1 is the batch that the consumer holds.
    if (claimed + 1 >= taken.load(std::memory_order_acquire) + slots.size()) return nullptr;
    Slot& slot = slots[claimed++ % slots.size()];
    slot.batch.start = claim_at;
    claim_at = after(claim_at);
    return &slot;
  }

  void run(int number) {
    MemoryNodes::here().settle_in_turn(number);  // so is its batch's memory, which it writes first
    Scratch scratch;
    const ThreadTimes times;
    while (true) {
      // Looked at before what they tell of: so nothing that happens in between is slept through.
      const uint32_t rung = bell, wanted = more;
      if (stop) return;
      if (number >= appetite->active()) {
        bell.notify_one();  // it may have been this one that was woken
        more.wait(wanted);
        continue;
      }
      Slot* const free = claim();
      if (!free) {
        bell.wait(rung);
        continue;
      }
      Slot& slot = *free;
      std::exception_ptr error;
      try {
        const ThreadTimes::Times begin = times.now();
        fill(slot.batch, scratch);
        require_mapped_files();  // or zeros could have been taken for data
        const ThreadTimes::Times end = times.now();
        worked.add(slot.batch.valid, begin, end);
      } catch (...) {
        error = std::current_exception();
      }
      const std::lock_guard lock(mutex);
      slot.error = error;
      ++filled;
      slot.ready.store(true, std::memory_order_release);
      done.notify_one();
    }
  }

  /// What one thread works with.
  struct Scratch {
    PictureReader reader;
    std::vector<Pick> picks;
    std::vector<int64_t> drawn;
    std::vector<uint8_t> decoded, between;
  };

  void fill(Batch& batch, Scratch& scratch) {
    const Cursor& at = batch.start;
    const size_t size = result.bytes();
    batch.pictures.resize(static_cast<size_t>(options.batch) * size);
    batch.labels.assign(static_cast<size_t>(options.batch), 0);
    batch.indices.assign(static_cast<size_t>(options.batch), -1);
    const int64_t all = valid_at(at);
    batch.valid = std::max<int64_t>(0, (all - options.rank + options.ranks - 1) / options.ranks);
    if (has_weights) batch.weights.assign(static_cast<size_t>(options.batch), 0);
    scratch.picks.resize(static_cast<size_t>(all));
    if (mixture) {
      scratch.drawn.assign(at.state.begin() + 2, at.state.end());
      mixture->run(at.seed, scratch.drawn, scratch.picks);
    } else {
      order->run(at.seed, at.epoch, at.position, scratch.picks);
    }
    for (int64_t i = 0; i < batch.valid && options.ranks > 1; ++i)
      scratch.picks[static_cast<size_t>(i)] =
          scratch.picks[static_cast<size_t>(i * options.ranks + options.rank)];
    scratch.picks.resize(static_cast<size_t>(batch.valid));
    for (const Pick& pick : scratch.picks) pictures.will_read(pick.index);
    scratch.decoded.resize(pictures.extent().bytes());
    for (int64_t i = 0; i < batch.valid; ++i) {
      SampleKey sample{at.seed, at.epoch, at.position + i * options.ranks + options.rank, 0};
      const Pick& pick = scratch.picks[static_cast<size_t>(i)];
      int64_t index = pick.index;
      uint8_t* const out = &batch.pictures[static_cast<size_t>(i) * size];
      const bool direct = augmenter.nothing_to_apply();
      const uint8_t* planes = direct ? out : scratch.decoded.data();
      if (pictures.cached())
        planes = pictures.cached_planes(index);
      else
        pictures.load(index, sample, scratch.reader, direct ? out : scratch.decoded.data());
      if (labels.there()) batch.labels[i] = labels[index];
      batch.indices[i] = sample.index = index;
      if (has_weights)
        batch.weights[i] =
            static_cast<float>(pick.weight * (weights.empty() ? 1 : weights[static_cast<size_t>(index)]));
      if (planes != out) augmenter.apply(pictures.extent(), planes, out, sample, scratch.between);
    }
    if (!mixer.empty() && batch.valid > 0)
      mix_batch(mixer, result, batch, {at.seed, at.epoch, at.position + options.rank, 0}, scratch.between);
    std::fill(batch.pictures.begin() + static_cast<int64_t>(size) * batch.valid, batch.pictures.end(),
              uint8_t{0});
  }

  const Batch& next() override {
    const uint64_t number = taken.load(std::memory_order_relaxed);
    Slot& slot = slots[number % slots.size()];
    const bool waited = !slot.ready.load(std::memory_order_acquire);
    if (waited) {
      std::unique_lock lock(mutex);
      done.wait(lock, [&] { return slot.ready.load(std::memory_order_acquire); });
    }
    if (slot.error) std::rethrow_exception(slot.error);  // and again at the next call
    const bool full = filled-- + 1 >= slots.size();
    if (number > 0) slots[(number - 1) % slots.size()].ready.store(false, std::memory_order_relaxed);
    taken.store(number + 1, std::memory_order_release);
    take_at = after(take_at);
    ++bell;
    bell.notify_one();
    if (appetite->handed_over(waited, full)) {
      ++more;
      more.notify_all();
    }
    return slot.batch;
  }

  bool ready(double seconds) override {
    const Slot& slot = slots[taken % slots.size()];
    const auto is_ready = [&] { return slot.ready.load(std::memory_order_acquire); };
    if (is_ready()) return true;
    std::unique_lock lock(mutex);
    return done.wait_for(lock, std::chrono::duration<double>(seconds), is_ready);
  }

  Cursor cursor() const override { return take_at; }

  void seek(const Cursor& cursor) override {
    if (cursor.epoch < 0 || cursor.position < 0 || cursor.position > epoch_length)
      fail<InputError>("{}: no sample {} of epoch {} in its {} samples; was the data changed since?", path(),
                       cursor.position, cursor.epoch, epoch_length);
    Cursor to = cursor;
    complete(to);
    halt();
    if (over(to)) {
      ++to.epoch;
      to.position = 0;
    }
    start(std::move(to));
  }

  void skip(int64_t batches) override {
    Cursor to = cursor();
    halt();
    for (; batches > 0; --batches) to = after(std::move(to));
    start(std::move(to));
  }

  void set_shares(std::span<const double> shares) override {
    if (!mixture) fail<InputError>("{}: is one source, which has no weight", path());
    const Cursor here = cursor();
    halt();
    std::exception_ptr refused;
    try {
      mixture->set_shares(shares);
    } catch (const InputError&) {
      refused = std::current_exception();
    }
    start(here);
    if (refused) std::rethrow_exception(refused);
  }

  const Dataset& samples() const override { return pictures.samples(); }
  const std::string& path() const override { return pictures.samples().path(); }
  const std::vector<std::string>& classes() const override { return labels.names(); }
  const Extent& extent() const override { return result; }
  int64_t batch_size() const override { return options.batch; }
  int64_t samples_per_epoch() const override { return epoch_length; }
  int64_t batches_per_epoch() const override { return (epoch_length + together - 1) / together; }
  bool weighted() const override { return has_weights; }
  bool mixed() const override { return !mixer.empty(); }
  int64_t cache_needed() const override {
    if (augmenter.frames()) return 0;
    return static_cast<int64_t>(pictures.extent().bytes()) * samples().count();
  }
  bool cached() const override { return pictures.cached(); }
  std::vector<BadSample> bad_samples() const override { return pictures.bad_samples(); }
  Tried tried() const override { return pictures.tried(); }
  std::vector<uint8_t> first_pictures(int64_t) override {
    fail<InternalError>("first_pictures() is for streams");
  }
};

}  // namespace

Loader::Loader(std::shared_ptr<const Dataset> samples, LoaderOptions options)
    : state_(std::make_unique<Indexed>(std::move(samples), std::move(options))) {}
Loader::Loader(std::unique_ptr<LoaderState> state) : state_(std::move(state)) {}
Loader::~Loader() = default;

const Batch& Loader::next() { return state_->next(); }
bool Loader::ready(double seconds) { return state_->ready(seconds); }
Cursor Loader::cursor() const { return state_->cursor(); }
void Loader::seek(const Cursor& cursor) { state_->seek(cursor); }
void Loader::skip(int64_t batches) { state_->skip(batches); }
const Dataset& Loader::samples() const { return state_->samples(); }
const std::string& Loader::path() const { return state_->path(); }
const std::vector<std::string>& Loader::classes() const { return state_->classes(); }
bool Loader::streamed() const { return state_->streamed(); }
const Extent& Loader::extent() const { return state_->extent(); }
int64_t Loader::batch_size() const { return state_->batch_size(); }
int64_t Loader::samples_per_epoch() const { return state_->samples_per_epoch(); }
int64_t Loader::batches_per_epoch() const { return state_->batches_per_epoch(); }
bool Loader::weighted() const { return state_->weighted(); }
bool Loader::mixed() const { return state_->mixed(); }
int64_t Loader::cache_needed() const { return state_->cache_needed(); }
int64_t Loader::memory() const { return state_->memory(); }
int64_t Loader::memory_used() const { return state_->memory_used(); }
bool Loader::cached() const { return state_->cached(); }
std::vector<BadSample> Loader::bad_samples() const { return state_->bad_samples(); }
Tried Loader::tried() const { return state_->tried(); }
void Loader::set_shares(std::span<const double> shares) { state_->set_shares(shares); }
std::vector<uint8_t> Loader::first_pictures(int64_t most) { return state_->first_pictures(most); }
LoaderWork Loader::work() const {
  const LoaderState::Worked& worked = state_->worked;
  const auto seconds = [](const std::atomic<int64_t>& time) {
    return static_cast<double>(time.load()) * 1e-9;
  };
  return {worked.pictures.load(), seconds(worked.on_cpu), seconds(worked.queued), seconds(worked.wall)};
}

}  // namespace millrace::data
