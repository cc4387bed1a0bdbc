// How it is done. For each stream one thread reads and draws samples, others decode them, in a ring of samples; the
// consumer takes them in the order drawn, leaves out bad ones and fills its batch. So a batch is the next good samples of the
// order, whatever the number of threads, and which are bad need not be known before. Of several streams the consumer draws by
// place which one the next sample comes from: what each gives does not depend on it.
#include "data/feed/streams/stream_loader.h"

#include <chrono>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "base/format.h"
#include "base/memory_nodes.h"
#include "base/thread_pool.h"
#include "data/augment/augment.h"
#include "data/codecs/pictures/extent.h"
#include "data/codecs/pictures/picture_reader.h"
#include "data/codecs/pictures/stored_picture.h"
#include "data/feed/loader_work.h"
#include "data/feed/streams/stream_intake.h"
#include "data/order/shares.h"

namespace millrace::data {
namespace {

std::string path_of(const std::vector<NamedStream>& streams) {
  if (streams.empty()) fail<InternalError>("no streams to load");
  if (streams[0].name.empty()) return streams[0].stream->path();
  std::string all;
  for (const NamedStream& each : streams) all += (all.empty() ? "" : ", ") + each.name;
  return all;
}

class Streamed final : public LoaderState {
 public:
  Streamed(std::vector<NamedStream> streams, std::vector<std::string> classes, LoaderOptions given);
  ~Streamed() override { halt(); }

  const Batch& next() override {
    gather(nullptr);
    hand_over();
    return batch_;
  }
  bool ready(double seconds) override {
    const Until until = std::chrono::steady_clock::now() +
                        std::chrono::duration_cast<Until::duration>(std::chrono::duration<double>(seconds));
    try {
      return gather(&until);
    } catch (...) {
      return true;  // next() throws it again
    }
  }
  Cursor cursor() const override;
  void seek(const Cursor& cursor) override;
  void skip(int64_t batches) override {
    for (; batches > 0; --batches) next();
  }

  const Dataset& samples() const override { fail<InternalError>("{}: a stream is not read by index", path_); }
  const std::string& path() const override { return path_; }
  const std::vector<std::string>& classes() const override { return classes_; }
  const Extent& extent() const override { return result_; }
  int64_t batch_size() const override { return options_.batch; }
  int64_t samples_per_epoch() const override { return options_.epoch_samples / together_ * together_; }
  int64_t batches_per_epoch() const override { return options_.epoch_samples / together_; }
  bool streamed() const override { return true; }
  int64_t memory() const override { return options_.memory; }
  int64_t memory_used() const override {
    int64_t bytes = options_.memory > 0 ? fixed_ : 0;
    for (const auto& intake : intakes_) bytes += intake->reader.memory().most();
    return bytes;
  }
  bool weighted() const override { return !options_.sample_weight.empty(); }
  bool mixed() const override { return !mixer_.empty(); }
  std::vector<BadSample> bad_samples() const override {
    std::vector<BadSample> list;
    for (const auto& [index, bad] : bad_) list.push_back(bad);
    return list;
  }
  Tried tried() const override {
    int64_t samples = 0;
    for (const auto& intake : intakes_) samples += intake->tried;
    const auto bad = static_cast<int64_t>(bad_.size());
    return {samples, bad, bad};
  }
  void set_shares(std::span<const double> shares) override;
  std::vector<uint8_t> first_pictures(int64_t most) override;

 private:
  using Until = std::chrono::steady_clock::time_point;
  using What = StreamItem::What;
  /// A sample of the batch that is being filled, without its planes.
  struct Gathered {
    size_t source = 0;
    StreamItem item;
    int64_t row = -1;  // of the batch; -1: it has none
  };

  void check() const;
  void find_extent();
  void limit_memory();
  void start();
  void halt();
  void read(StreamIntake& from);
  void work(int number);
  StreamIntake* claimable();
  void decode(StreamIntake& from, StreamItem& item, PictureReader& reader, std::vector<uint8_t>& decoded,
              std::vector<uint8_t>& between);
  bool gather(const Until* until);
  bool take_next(const Until* until);
  void take(size_t source, StreamItem& item);
  void begin_batch();
  void finish_batch();
  void hand_over();
  bool several() const { return shares_.has_value(); }
  bool full() const;
  /// Unique among all streams.
  int64_t index_of(size_t source, int64_t number) const {
    return number * static_cast<int64_t>(intakes_.size()) + static_cast<int64_t>(source);
  }
  void set_seed(uint64_t seed) {
    seed_ = seed;
    for (size_t i = 0; i < intakes_.size(); ++i)
      intakes_[i]->seed = several() ? Shares::own_seed(seed, i) : seed;
  }

  LoaderOptions options_;
  Augmenter augmenter_;
  Mixer mixer_;
  std::string path_;
  std::vector<std::string> classes_;
  int64_t together_ = 1;  // samples of a batch of all ranks
  std::optional<Shares> shares_;
  std::vector<std::unique_ptr<StreamIntake>> intakes_;
  Extent result_;
  int threads_wanted_ = 1;
  int64_t fixed_ = 0;  // bytes that it takes besides samples kept and ahead

  // The consumer's.
  std::vector<Gathered> gathered_;  // drawn for the next batch, of all ranks
  Batch batch_;
  int64_t rows_ = 0;  // of the batch, filled so far
  uint64_t seed_ = 0;
  int64_t place_ = 0;  // samples drawn of all streams before the batch
  Cursor at_;          // of the next batch to give out, without the state
  std::vector<uint8_t> scratch_;
  std::map<int64_t, BadSample> bad_;

  std::mutex mutex_;  // guards what follows and a part of the intakes
  std::condition_variable work_, done_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

Streamed::Streamed(std::vector<NamedStream> streams, std::vector<std::string> classes, LoaderOptions given)
    : options_(std::move(given)),
      augmenter_(options_.augment),
      mixer_(options_.mix),
      path_(path_of(streams)),
      classes_(std::move(classes)) {
  check();
  together_ = options_.batch * options_.ranks;
  threads_wanted_ = options_.threads > 0 ? options_.threads : available_cpus();
  if (!streams[0].name.empty()) shares_.emplace(streams.size(), options_.shares);
  // A multiple of the ranks, so that only one in so many places ever holds a picture.
  // Under a limit the same on all machines, so that what fits on one does on others.
  const int64_t least = options_.memory > 0 ? 64 : 2 * threads_wanted_;
  const int64_t ahead = (std::max<int64_t>(options_.batch, least) + 2) * options_.ranks;
  for (NamedStream& each : streams)
    intakes_.push_back(std::make_unique<StreamIntake>(each.name, std::move(each.stream), classes_, options_,
                                                      augmenter_, static_cast<size_t>(ahead)));
  for (const auto& intake : intakes_) intake->reader.limit_memory(options_.memory / std::ssize(intakes_), 0);
  find_extent();
  augmenter_.check(intakes_[0]->pictures.extent());
  result_ = augmenter_.result(intakes_[0]->pictures.extent());
  limit_memory();
  set_seed(options_.seed);
  for (const auto& intake : intakes_) intake->reader.seek(intake->seed, {});
  at_ = {seed_, 0, 0};
}

void Streamed::check() const {
  if (options_.batch < 1) fail<InputError>("batch = {}: a batch has at least one sample", options_.batch);
  if (options_.ranks < 1 || options_.rank < 0 || options_.rank >= options_.ranks)
    fail<InputError>("rank {} of {}: ranks are counted from 0 to one less than there are", options_.rank,
                     options_.ranks);
  if (!options_.parts.empty()) fail<InternalError>("{}: parts are of indexed sources", path_);
  if (options_.epoch_samples < options_.batch * options_.ranks)
    fail<InputError>("{}: an epoch of {} samples does not fill a batch of {}", path_, options_.epoch_samples,
                     options_.batch * options_.ranks);
  if (classes_.empty())
    fail<InputError>("{}: the classes of a stream must be known before its end: none are given", path_);
}

/// What the batch leaves is shared equally by the streams: so whether it does depends on none of their threads.
void Streamed::limit_memory() {
  if (options_.memory <= 0) return;
  constexpr int64_t names = 256;  // of a sample, about
  const int64_t count = std::ssize(intakes_), size = static_cast<int64_t>(result_.bytes());
  fixed_ = batch_bytes(options_, result_) + together_ * (names + static_cast<int64_t>(sizeof(Gathered))) +
           count * std::ssize(intakes_[0]->ring) * static_cast<int64_t>(sizeof(StreamItem));
  // Other shares may come: what was taken by the old ones then waits for its stream's turn.
  if (several()) fixed_ += count * together_ * size;
  const int64_t left = (options_.memory - fixed_) / count;
  if (left < size + names)
    fail<InputError>(
        "{}: data.memory leaves {} here, and a batch of {} with a picture ahead{} takes {}: raise it, or "
        "make "
        "the batch smaller",
        path_, memory_text(options_.memory), options_.batch, several() ? " of each stream" : "",
        memory_text(fixed_ + count * (size + names)));
  for (const auto& intake : intakes_) intake->reader.limit_memory(left, size + names);
}

/// The first good picture decides on the size, of all streams.
void Streamed::find_extent() {
  constexpr size_t most = 1000;
  size_t source = 0;  // one that is drawn from: others may give nothing for long
  while (several() && source + 1 < intakes_.size() && !(options_.shares[source] > 0)) ++source;
  StreamIntake& from = *intakes_[source];
  std::string first_reason = "it is empty";
  for (size_t i = 0; i < most; ++i) {
    const auto& head = from.reader.head(i + 1);
    if (head.size() <= i) break;
    const std::string why = from.pictures.find_extent(head[i]);
    if (why.empty()) {
      for (const auto& other : intakes_) other->pictures.take_extent(from.pictures);
      return;
    }
    if (i == 0) first_reason = why;
  }
  fail<InputError>("{}: none of its first {} samples is a picture with a class (the first: {})",
                   from.reader.stream().path(), from.reader.head(0).size(), first_reason);
}

std::vector<uint8_t> Streamed::first_pictures(int64_t most) {
  if (!threads_.empty()) fail<InternalError>("the stream is being read already");
  std::vector<uint8_t> all;
  PictureReader reader;
  StreamedPicture picture;
  double sum = 0;
  for (size_t s = 0; several() && s < intakes_.size(); ++s) sum += options_.shares[s];
  for (size_t s = 0; s < intakes_.size(); ++s) {
    StreamIntake& from = *intakes_[s];
    const double share = several() ? options_.shares[s] / sum : 1;
    const auto wanted = static_cast<size_t>(std::ceil(static_cast<double>(most) * share));
    const size_t size = from.pictures.extent().bytes();
    const auto& head = from.reader.head(wanted);
    for (size_t i = 0; i < std::min(head.size(), wanted); ++i) {
      all.resize(all.size() + size);
      if (!from.pictures.load(head[i], nullptr, reader, picture, all.data() + all.size() - size).empty())
        all.resize(all.size() - size);
    }
  }
  return all;
}

void Streamed::start() {
  if (!threads_.empty()) return;
  stop_ = false;
  try {
    for (const auto& intake : intakes_) threads_.emplace_back([this, &from = *intake] { read(from); });
    for (int i = 0; i < threads_wanted_; ++i) threads_.emplace_back([this, i] { work(i); });
  } catch (const std::system_error& error) {
    halt();
    fail<IoError>(
        "the loader cannot start its threads: {}; raise the limit of processes or set fewer threads",
        error.what());
  }
}

void Streamed::halt() {
  if (threads_.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  for (const auto& intake : intakes_) {
    intake->reader.stop();
    intake->room.notify_all();
  }
  work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  for (const auto& intake : intakes_) intake->reader.stopped();
}

Cursor Streamed::cursor() const {
  std::vector<std::vector<int64_t>> states;
  for (const auto& intake : intakes_) states.push_back(intake->order.state());
  return {seed_, at_.epoch, at_.position, several() ? mixture_state(states) : std::move(states[0])};
}

void Streamed::seek(const Cursor& cursor) {
  // Of another number of ranks an epoch may end elsewhere.
  if (cursor.epoch < 0 || cursor.position < 0 || cursor.position > options_.epoch_samples)
    fail<InputError>("{}: no sample {} of epoch {} in the {} of data.epoch_samples", path_, cursor.position,
                     cursor.epoch, options_.epoch_samples);
  const auto states = several() ? stream_states(path_, cursor.state, intakes_.size())
                                : std::vector<std::vector<int64_t>>{cursor.state};
  std::vector<StreamOrder> orders;
  for (size_t i = 0; i < intakes_.size(); ++i) {
    orders.emplace_back(intakes_[i]->order.capacity());
    orders.back().restore(intakes_[i]->reader.stream().path(), states[i]);
  }
  halt();
  set_seed(cursor.seed);
  place_ = 0;
  for (size_t i = 0; i < intakes_.size(); ++i) {
    StreamIntake& intake = *intakes_[i];
    intake.reader.seek(intake.seed, states[i]);
    intake.order = std::move(orders[i]);
    intake.clear();
    place_ += intake.order.drawn();
  }
  gathered_.clear();
  rows_ = 0;
  at_ = {seed_, cursor.epoch, cursor.position};
  if (options_.epoch_samples - at_.position < together_) at_ = {seed_, cursor.epoch + 1, 0};
}

void Streamed::set_shares(std::span<const double> shares) {
  if (!shares_) fail<InputError>("{}: is one source, which has no weight", path_);
  shares_->set(shares);
  options_.shares.assign(shares.begin(), shares.end());
  // What the batch to come has by the old ones goes back to its streams.
  for (; !gathered_.empty(); gathered_.pop_back()) {
    Gathered& last = gathered_.back();
    if (last.row >= 0) {
      const auto* const planes = &batch_.pictures[static_cast<size_t>(last.row) * result_.bytes()];
      last.item.planes.assign(planes, planes + result_.bytes());
    }
    StreamIntake& from = *intakes_[last.source];
    if (last.item.mine) from.in_pass = std::max<int64_t>(0, from.in_pass - 1);
    from.returned.push_front(std::move(last.item));
    from.good_in_pass = true;
  }
  rows_ = 0;
}

void Streamed::read(StreamIntake& from) {
  const ThreadTimes times;
  std::unique_lock lock(mutex_);
  while (true) {
    from.room.wait(lock, [&] { return stop_ || from.drawn < from.taken + from.ring.size(); });
    if (stop_) return;
    StreamItem& next = from.item(from.drawn);
    // Which draws of one of several streams are whose depends on the shares, which may change: all are decoded.
    next.mine = several() ||
                from.drawn % static_cast<uint64_t>(options_.ranks) == static_cast<uint64_t>(options_.rank);
    lock.unlock();
    std::exception_ptr error;
    const ThreadTimes::Times begin = times.now();
    try {
      next.drawn = from.reader.next();
      next.stored = StreamMemory::of(next.drawn.record);
      if (next.mine) {
        from.reader.memory().draw(next.stored);
      } else {
        next.drawn.record.bytes = {};
        from.reader.memory().drop(next.stored);
      }
      worked.add(0, begin, times.now());
    } catch (const StreamStopped&) {
      return;
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    next.error = error;
    next.what = error || !next.mine ? What::ready : What::drawn;
    ++from.drawn;
    if (next.what == What::drawn)
      work_.notify_one();
    else
      done_.notify_one();
    if (error) return;
  }
}

/// The stream with the fewest samples ahead, of those with a sample to decode.
StreamIntake* Streamed::claimable() {
  StreamIntake* best = nullptr;
  for (const auto& intake : intakes_) {
    while (intake->claimed < intake->drawn && intake->item(intake->claimed).what == What::ready)
      ++intake->claimed;
    if (intake->claimed < intake->drawn &&
        (!best || intake->claimed - intake->taken < best->claimed - best->taken))
      best = intake.get();
  }
  return best;
}

void Streamed::work(int number) {
  MemoryNodes::here().settle_in_turn(number);
  PictureReader reader;
  std::vector<uint8_t> decoded, between;
  const ThreadTimes times;
  std::unique_lock lock(mutex_);
  while (true) {
    StreamIntake* from = nullptr;
    work_.wait(lock, [&] { return stop_ || (from = claimable()) != nullptr; });
    if (stop_) return;
    StreamItem& mine = from->item(from->claimed++);
    mine.what = What::decoding;
    lock.unlock();
    const ThreadTimes::Times begin = times.now();
    try {
      decode(*from, mine, reader, decoded, between);
    } catch (...) {
      mine.error = std::current_exception();
    }
    mine.drawn.record.bytes = {};
    from->reader.memory().decoded(mine.stored);
    worked.add(1, begin, times.now());
    lock.lock();
    mine.what = What::ready;
    done_.notify_one();
  }
}

void Streamed::decode(StreamIntake& from, StreamItem& item, PictureReader& reader,
                      std::vector<uint8_t>& decoded, std::vector<uint8_t>& between) {
  const StreamRecord& record = item.drawn.record;
  const SampleKey key{from.seed, item.drawn.pass, item.drawn.number, record.at.number};
  const bool direct = augmenter_.nothing_to_apply();
  const Extent& stored = from.pictures.extent();
  item.planes.resize(result_.bytes());
  decoded.resize(stored.bytes());
  item.why =
      from.pictures.load(record, &key, reader, item.picture, direct ? item.planes.data() : decoded.data());
  if (item.why.empty() && !direct) augmenter_.apply(stored, decoded.data(), item.planes.data(), key, between);
}

/// One rank alone fills its batch with good samples; where there are others, who cannot know which of these are bad, a batch is
/// so many draws.
bool Streamed::full() const {
  return options_.ranks > 1 ? std::ssize(gathered_) == together_ : rows_ == options_.batch;
}

/// Fills the batch as far as samples are ready, or waits for them; true when it is full.
bool Streamed::gather(const Until* until) {
  start();
  while (!full())
    if (!take_next(until)) return false;
  return true;
}

bool Streamed::take_next(const Until* until) {
  const size_t source = shares_ ? shares_->source_at(seed_, place_ + std::ssize(gathered_)) : 0;
  StreamIntake& from = *intakes_[source];
  if (!from.returned.empty()) {
    StreamItem back = std::move(from.returned.front());
    from.returned.pop_front();
    take(source, back);
    return true;
  }
  std::unique_lock lock(mutex_);
  StreamItem& next = from.item(from.taken);
  const auto is_ready = [&] { return next.what == What::ready; };
  if (!until)
    done_.wait(lock, is_ready);
  else if (!done_.wait_until(lock, *until, is_ready))
    return false;
  if (next.error) std::rethrow_exception(next.error);  // and again at the next call
  lock.unlock();
  take(source, next);
  if (from.reader.memory().limited()) {
    std::vector<uint8_t>().swap(next.planes);
    if (next.mine) from.reader.memory().taken();
  }
  lock.lock();
  next.what = What::empty;
  ++from.taken;
  from.claimed = std::max(from.claimed, from.taken);
  from.room.notify_one();
  return true;
}

void Streamed::begin_batch() {
  const auto count = static_cast<size_t>(options_.batch);
  batch_.pictures.resize(count * result_.bytes());
  batch_.labels.assign(count, 0);
  batch_.indices.assign(count, -1);
  batch_.names.assign(count, {});
  if (weighted()) batch_.weights.assign(count, 0);
}

/// Puts the next sample into the batch, where it is good and this rank's; its planes stay the item's then.
void Streamed::take(size_t source, StreamItem& item) {
  if (gathered_.empty()) begin_batch();
  StreamIntake& from = *intakes_[source];
  const int64_t number = item.drawn.record.at.number;
  const bool mine = options_.ranks == 1 || std::ssize(gathered_) % options_.ranks == options_.rank;
  if (item.drawn.draw.new_pass) {
    if (!from.good_in_pass)
      fail<InputError>("{}: none of its samples can be read, all through it", from.reader.stream().path());
    from.in_pass = 0;
    from.good_in_pass = options_.ranks > 1;
  }
  if (mine) from.tried = std::max(from.tried, ++from.in_pass);
  Gathered& entry = gathered_.emplace_back();
  entry.source = source;
  if (mine && !item.why.empty()) {
    const int64_t index = index_of(source, number);
    bad_.try_emplace(index, BadSample{index, item.picture.name, item.why});
  } else if (mine) {
    from.good_in_pass = true;
    const auto row = static_cast<size_t>(entry.row = rows_++);
    std::copy(item.planes.begin(), item.planes.end(),
              batch_.pictures.begin() + static_cast<ptrdiff_t>(row * result_.bytes()));
    batch_.labels[row] = item.picture.label;
    batch_.indices[row] = index_of(source, number);
    batch_.names[row] = item.picture.name;
    if (weighted()) batch_.weights[row] = item.picture.weight;
  } else if (several()) {
    entry.item.planes = std::move(item.planes);  // by other shares it may be this rank's
  }
  entry.item.mine = mine;
  entry.item.what = What::ready;
  entry.item.drawn = std::move(item.drawn);
  entry.item.picture = std::move(item.picture);
  entry.item.why = std::move(item.why);
}

/// What can be done when nothing can change any more.
void Streamed::finish_batch() {
  batch_.valid = rows_;
  batch_.names.resize(static_cast<size_t>(rows_));
  std::fill(batch_.pictures.begin() + static_cast<ptrdiff_t>(static_cast<size_t>(rows_) * result_.bytes()),
            batch_.pictures.end(), uint8_t{0});
  if (!mixer_.empty() && rows_ > 0)
    mix_batch(mixer_, result_, batch_, {seed_, at_.epoch, at_.position + options_.rank, 0}, scratch_);
}

/// The batch made becomes the one given out.
void Streamed::hand_over() {
  finish_batch();
  for (const Gathered& each : gathered_) intakes_[each.source]->order.apply(each.item.drawn.draw);
  place_ += std::ssize(gathered_);
  gathered_.clear();
  rows_ = 0;
  batch_.start = at_;
  at_.position += together_;
  if (options_.epoch_samples - at_.position < together_) {
    ++at_.epoch;
    at_.position = 0;
  }
}

std::vector<NamedStream> only(std::unique_ptr<Stream> stream) {
  std::vector<NamedStream> one;
  one.push_back({"", std::move(stream)});
  return one;
}

}  // namespace

std::unique_ptr<LoaderState> streamed(std::vector<NamedStream> streams, std::vector<std::string> classes,
                                      LoaderOptions options) {
  return std::make_unique<Streamed>(std::move(streams), std::move(classes), std::move(options));
}

std::unique_ptr<LoaderState> streamed(std::unique_ptr<Stream> stream, std::vector<std::string> classes,
                                      LoaderOptions options) {
  return streamed(only(std::move(stream)), std::move(classes), std::move(options));
}

}  // namespace millrace::data
