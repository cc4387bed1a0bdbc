// How it is done. For each stream one thread reads and draws samples, others make their rows, in a ring of
// samples; the consumer takes them in the order drawn, leaves out bad ones and fills its batch. So a batch is
// the next good samples of the order, whatever the number of threads, and which are bad need not be known
// before. Of several streams the consumer draws by place which one the next sample comes from: what each
// gives does not depend on it.
#include "data/feed/streams/stream_feed.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include <millrace/feed.h>

#include "base/format.h"
#include "base/memory_nodes.h"
#include "base/size_text.h"
#include "base/thread_pool.h"
#include "data/feed/streams/stream_line.h"
#include "data/feed/streams/stream_rows.h"
#include "data/feed/thread_times.h"
#include "data/order/shares.h"

namespace millrace::data {
namespace {

std::string path_of_streams(const std::vector<NamedStream>& streams) {
  if (streams.empty()) fail<InternalError>("no streams to read");
  if (streams[0].name.empty()) return streams[0].stream->path();
  std::string all;
  for (const NamedStream& each : streams) all += (all.empty() ? "" : ", ") + each.name;
  return all;
}

class StreamedFeed final : public StreamFeed {
 public:
  StreamedFeed(std::vector<NamedStream> streams, const StreamParts& make_parts, StreamFeedOptions given);
  ~StreamedFeed() override { halt(); }

  std::span<const Field> fields() const override { return rows_->fields(); }
  const FeedBatch& next() override;
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

  int64_t batch_size() const override { return options_.batch; }
  int64_t batches_per_epoch() const override { return options_.epoch_samples / together_; }
  int64_t samples_per_epoch() const override { return options_.epoch_samples / together_ * together_; }
  bool streamed() const override { return true; }
  int64_t count() const override { return 0; }
  const std::string& path() const override { return path_; }
  const char* unit() const override { return options_.unit; }
  std::vector<std::string> notes() const override { return options_.notes; }
  void set_shares(std::span<const double> shares) override;
  bool cached() const override { return false; }
  int64_t sample_bytes() const override { return static_cast<int64_t>(rows_->bytes()); }
  int64_t memory() const override {
    int64_t bytes = options_.memory > 0 ? fixed_ : 0;
    for (const auto& line : lines_) bytes += line->reader.memory().most();
    return bytes;
  }
  LoaderWork work() const override { return worked_.sum(); }
  std::vector<BadSample> bad_samples() const override {
    std::vector<BadSample> list;
    for (const auto& [index, bad] : bad_) list.push_back(bad);
    return list;
  }
  Tried tried() const override {
    int64_t samples = 0;
    for (const auto& line : lines_) samples += line->tried;
    const auto bad = static_cast<int64_t>(bad_.size());
    return {samples, bad, bad};
  }
  std::shared_ptr<const Dataset> first_samples(int64_t most) override;
  void take_parts(std::vector<NamedPart> parts) override;

 private:
  using Until = std::chrono::steady_clock::time_point;
  using What = LineItem::What;
  /// A sample of the batch that is being filled, without its row.
  struct Gathered {
    size_t source = 0;
    LineItem item;
    int64_t row = -1;  // of the batch; -1: it has none
  };

  void check() const;
  std::vector<NamedPart> parts_for_head(const StreamParts& make_parts);
  void use(std::vector<NamedPart> parts);
  void limit_memory();
  void start();
  void halt();
  void read(StreamLine& from);
  void work_on(int number);
  StreamLine* claimable();
  void make_row(StreamLine& from, LineItem& item, StreamRows::Worker& worker);
  bool gather(const Until* until);
  bool take_next(const Until* until);
  void take(size_t source, LineItem& item);
  bool several() const { return shares_.has_value(); }
  bool full() const;
  /// Unique among all streams.
  int64_t index_of(size_t source, int64_t number) const {
    return number * static_cast<int64_t>(lines_.size()) + static_cast<int64_t>(source);
  }
  void set_seed(uint64_t seed) {
    seed_ = seed;
    for (size_t i = 0; i < lines_.size(); ++i) lines_[i]->seed = several() ? Shares::own_seed(seed, i) : seed;
  }

  StreamFeedOptions options_;
  std::string path_;
  int64_t together_ = 1;  // samples of a batch of all ranks
  std::optional<Shares> shares_;
  std::vector<std::unique_ptr<StreamLine>> lines_;
  std::vector<Column> columns_, first_columns_;  // that the parts know; of first_samples()
  std::optional<StreamRows> rows_;
  int threads_wanted_ = 1;
  int64_t fixed_ = 0;  // bytes that it takes besides samples kept and ahead

  // The consumer's.
  std::vector<Gathered> gathered_;  // drawn for the next batch, of all ranks
  StreamRows::Arrays arrays_;
  std::vector<int64_t> indices_;
  std::vector<std::string> names_;
  FeedBatch batch_;
  StreamRows::Worker mixer_;
  int64_t filled_ = 0;  // rows of the batch, so far
  uint64_t seed_ = 0;
  int64_t place_ = 0;  // samples drawn of all streams before the batch
  Cursor at_;          // of the next batch to give out, without the state
  std::map<int64_t, BadSample> bad_;

  WorkSum worked_;
  std::mutex mutex_;  // guards what follows and a part of the lines
  std::condition_variable work_, done_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

StreamedFeed::StreamedFeed(std::vector<NamedStream> streams, const StreamParts& make_parts,
                           StreamFeedOptions given)
    : options_(std::move(given)), path_(path_of_streams(streams)) {
  check();
  together_ = options_.batch * options_.ranks;
  threads_wanted_ = options_.threads > 0 ? options_.threads : available_cpus();
  if (!streams[0].name.empty()) shares_.emplace(streams.size(), options_.shares);
  // A multiple of the ranks, so that only one in so many places ever holds a row.
  // Under a limit the same on all machines, so that what fits on one does on others.
  const int64_t least = options_.memory > 0 ? 64 : 2 * threads_wanted_;
  const int64_t ahead = (std::max<int64_t>(options_.batch, least) + 2) * options_.ranks;
  const int64_t buffer = stream_buffer(options_.order);
  for (NamedStream& each : streams)
    lines_.push_back(std::make_unique<StreamLine>(each.name, std::move(each.stream), options_.sample_weight,
                                                  buffer, options_.seed, static_cast<size_t>(ahead)));
  for (const auto& line : lines_) line->reader.limit_memory(options_.memory / std::ssize(lines_), 0);
  indices_.resize(static_cast<size_t>(options_.batch));
  names_.resize(indices_.size());
  use(parts_for_head(make_parts));
  set_seed(options_.seed);
  for (const auto& line : lines_) line->reader.seek(line->seed, {});
  at_ = {seed_, 0, 0};
}

void StreamedFeed::check() const {
  if (options_.batch < 1) fail<InputError>("batch = {}: a batch has at least one sample", options_.batch);
  if (options_.ranks < 1 || options_.rank < 0 || options_.rank >= options_.ranks)
    fail<InputError>("rank {} of {}: ranks are counted from 0 to one less than there are", options_.rank,
                     options_.ranks);
  if (options_.epoch_samples < options_.batch * options_.ranks)
    fail<InputError>("{}: an epoch of {} samples does not fill a batch of {}", path_, options_.epoch_samples,
                     options_.batch * options_.ranks);
}

/// What the batch leaves is shared equally by the streams: so whether it does depends on none of their
/// threads.
void StreamedFeed::limit_memory() {
  if (options_.memory <= 0) return;
  constexpr int64_t names = 256;  // of a sample, about
  const int64_t count = std::ssize(lines_), size = static_cast<int64_t>(rows_->bytes());
  const auto in_batch = static_cast<int64_t>(rows_->batch_bytes() + sizeof(int64_t));
  fixed_ = options_.batch * in_batch + together_ * (names + static_cast<int64_t>(sizeof(Gathered))) +
           count * std::ssize(lines_[0]->ring) * static_cast<int64_t>(sizeof(LineItem)) + rows_->memory();
  // Other shares may come: what was taken by the old ones then waits for its stream's turn.
  if (several()) fixed_ += count * together_ * size;
  const int64_t left = (options_.memory - fixed_) / count;
  if (left < size + names) {
    std::string one = options_.unit;
    if (one.ends_with('s')) one.pop_back();
    fail<InputError>(
        "{}: data.memory leaves {} here, and a batch of {} with a {} ahead{} takes {}: raise it, or make the "
        "batch smaller",
        path_, memory_text(options_.memory), options_.batch, one, several() ? " of each stream" : "",
        memory_text(fixed_ + count * (size + names)));
  }
  for (const auto& line : lines_) line->reader.limit_memory(left, size + names);
}

/// The first good samples decide on the sizes, of all streams.
std::vector<NamedPart> StreamedFeed::parts_for_head(const StreamParts& make_parts) {
  constexpr size_t most = 1000;
  size_t source = 0;  // one that is drawn from: others may give nothing for long
  while (several() && source + 1 < lines_.size() && !(options_.shares[source] > 0)) ++source;
  StreamLine& from = *lines_[source];
  StreamHead head(from.reader.stream());
  std::string first_reason = "it is empty";
  size_t seen = 0;
  for (size_t wanted = 1;; wanted = std::min(2 * wanted, most)) {
    const auto& records = from.reader.head(wanted);
    for (; seen < records.size(); ++seen)
      if (std::string why = head.add(from.opener, records[seen]); !why.empty() && seen == 0)
        first_reason = std::move(why);
    const bool last = wanted == most || records.size() < wanted;
    if (head.count() == 0) {
      if (!last) continue;
      fail<InputError>("{}: none of its first {} samples can be read (the first: {})",
                       from.reader.stream().path(), seen, first_reason);
    }
    head.watch();
    try {
      std::vector<NamedPart> parts = make_parts(head);
      columns_ = head.columns();
      return parts;
    } catch (const InputError&) {
      // Further samples change nothing where it went wrong before the last one. Where none was looked at, a
      // column may be missing that others have.
      const bool about_others = head.furthest() < 0 || head.furthest() + 1 == head.count();
      if (last || !about_others) throw;
    }
  }
}

std::shared_ptr<const Dataset> StreamedFeed::first_samples(int64_t most) {
  if (!threads_.empty()) fail<InternalError>("the stream is being read already");
  double sum = 0;
  for (size_t s = 0; several() && s < lines_.size(); ++s) sum += options_.shares[s];
  auto all = std::make_shared<StreamHead>(lines_[0]->reader.stream());
  for (size_t s = 0; s < lines_.size(); ++s) {
    StreamLine& from = *lines_[s];
    const double share = several() ? options_.shares[s] / sum : 1;
    const auto wanted = static_cast<size_t>(std::ceil(static_cast<double>(most) * share));
    const auto& head = from.reader.head(wanted);
    for (size_t i = 0; i < std::min(head.size(), wanted); ++i) all->add(from.opener, head[i]);
  }
  first_columns_ = all->columns();
  return all;
}

void StreamedFeed::take_parts(std::vector<NamedPart> parts) {
  if (!threads_.empty()) fail<InternalError>("the stream is being read already");
  columns_ = first_columns_;
  use(std::move(parts));
}

void StreamedFeed::use(std::vector<NamedPart> parts) {
  rows_.emplace(std::move(parts), !options_.sample_weight.empty());
  mixer_ = rows_->worker();
  limit_memory();
  arrays_ = rows_->arrays(options_.batch);
  batch_.arrays.clear();
  for (const AlignedBytes& array : arrays_) batch_.arrays.emplace_back(array.data(), array.size());
}

void StreamedFeed::start() {
  if (!threads_.empty()) return;
  stop_ = false;
  try {
    for (const auto& line : lines_) threads_.emplace_back([this, &from = *line] { read(from); });
    for (int i = 0; i < threads_wanted_; ++i) threads_.emplace_back([this, i] { work_on(i); });
  } catch (const std::system_error& error) {
    halt();
    fail<IoError>(
        "the loader cannot start its threads: {}; raise the limit of processes or set fewer threads",
        error.what());
  }
}

void StreamedFeed::halt() {
  if (threads_.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  for (const auto& line : lines_) {
    line->reader.stop();
    line->room.notify_all();
  }
  work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  for (const auto& line : lines_) line->reader.stopped();
}

Cursor StreamedFeed::cursor() const {
  std::vector<std::vector<int64_t>> states;
  for (const auto& line : lines_) states.push_back(line->order.state());
  return {seed_, at_.epoch, at_.position, several() ? mixture_state(states) : std::move(states[0])};
}

void StreamedFeed::seek(const Cursor& cursor) {
  // Of another number of ranks an epoch may end elsewhere.
  if (cursor.epoch < 0 || cursor.position < 0 || cursor.position > options_.epoch_samples)
    fail<InputError>("{}: no sample {} of epoch {} in the {} of data.epoch_samples", path_, cursor.position,
                     cursor.epoch, options_.epoch_samples);
  const auto states = several() ? stream_states(path_, cursor.state, lines_.size())
                                : std::vector<std::vector<int64_t>>{cursor.state};
  std::vector<StreamOrder> orders;
  for (size_t i = 0; i < lines_.size(); ++i) {
    orders.emplace_back(lines_[i]->order.capacity());
    orders.back().restore(lines_[i]->reader.stream().path(), states[i]);
  }
  halt();
  set_seed(cursor.seed);
  place_ = 0;
  for (size_t i = 0; i < lines_.size(); ++i) {
    StreamLine& line = *lines_[i];
    line.reader.seek(line.seed, states[i]);
    line.order = std::move(orders[i]);
    line.clear();
    place_ += line.order.drawn();
  }
  gathered_.clear();
  filled_ = 0;
  at_ = {seed_, cursor.epoch, cursor.position};
  if (options_.epoch_samples - at_.position < together_) at_ = {seed_, cursor.epoch + 1, 0};
}

void StreamedFeed::set_shares(std::span<const double> shares) {
  if (!shares_) fail<InputError>("{}: is one source, which has no weight", path_);
  shares_->set(shares);
  options_.shares.assign(shares.begin(), shares.end());
  // What the batch to come has by the old ones goes back to its streams.
  for (; !gathered_.empty(); gathered_.pop_back()) {
    Gathered& last = gathered_.back();
    if (last.row >= 0) {
      last.item.row.resize(rows_->bytes());
      rows_->take(arrays_, last.row, last.item.row.data());
    }
    StreamLine& from = *lines_[last.source];
    if (last.item.mine) from.in_pass = std::max<int64_t>(0, from.in_pass - 1);
    from.returned.push_front(std::move(last.item));
    from.good_in_pass = true;
  }
  filled_ = 0;
}

void StreamedFeed::read(StreamLine& from) {
  const ThreadTimes times;
  std::unique_lock lock(mutex_);
  while (true) {
    from.room.wait(lock, [&] { return stop_ || from.drawn < from.taken + from.ring.size(); });
    if (stop_) return;
    LineItem& next = from.item(from.drawn);
    // Which draws of one of several streams are whose depends on the shares, which may change: of all rows
    // are made.
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
      worked_.add(0, begin, times.now());
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

/// The stream with the fewest samples ahead, of those with a sample to work on.
StreamLine* StreamedFeed::claimable() {
  StreamLine* best = nullptr;
  for (const auto& line : lines_) {
    while (line->claimed < line->drawn && line->item(line->claimed).what == What::ready) ++line->claimed;
    if (line->claimed < line->drawn && (!best || line->claimed - line->taken < best->claimed - best->taken))
      best = line.get();
  }
  return best;
}

void StreamedFeed::work_on(int number) {
  MemoryNodes::here().settle_in_turn(number);
  StreamRows::Worker worker;
  bool begun = false;
  const ThreadTimes times;
  std::unique_lock lock(mutex_);
  while (true) {
    StreamLine* from = nullptr;
    work_.wait(lock, [&] { return stop_ || (from = claimable()) != nullptr; });
    if (stop_) return;
    LineItem& mine = from->item(from->claimed++);
    mine.what = What::working;
    lock.unlock();
    const ThreadTimes::Times begin = times.now();
    try {
      if (!begun) worker = rows_->worker();
      begun = true;
      make_row(*from, mine, worker);
    } catch (...) {
      mine.error = std::current_exception();
    }
    mine.drawn.record.bytes = {};
    from->reader.memory().decoded(mine.stored);
    worked_.add(1, begin, times.now());
    lock.lock();
    mine.what = What::ready;
    done_.notify_one();
  }
}

void StreamedFeed::make_row(StreamLine& from, LineItem& item, StreamRows::Worker& worker) {
  const StreamRecord& record = item.drawn.record;
  OpenedRecord opened = from.opener.open(record, columns_);
  item.name = std::move(opened.name);
  item.weight = opened.weight;
  item.why = std::move(opened.why);
  item.row.resize(rows_->bytes());
  if (!item.why.empty()) return;
  const SampleKey key{from.seed, item.drawn.pass, item.drawn.number, record.at.number};
  item.why = rows_->make(*opened.sample, key, worker, item.row.data());
}

/// One rank alone fills its batch with good samples; where there are others, who cannot know which of these
/// are bad, a batch is so many draws.
bool StreamedFeed::full() const {
  return options_.ranks > 1 ? std::ssize(gathered_) == together_ : filled_ == options_.batch;
}

/// Fills the batch as far as samples are ready, or waits for them; true when it is full.
bool StreamedFeed::gather(const Until* until) {
  start();
  while (!full())
    if (!take_next(until)) return false;
  return true;
}

bool StreamedFeed::take_next(const Until* until) {
  const size_t source = shares_ ? shares_->source_at(seed_, place_ + std::ssize(gathered_)) : 0;
  StreamLine& from = *lines_[source];
  if (!from.returned.empty()) {
    LineItem back = std::move(from.returned.front());
    from.returned.pop_front();
    take(source, back);
    return true;
  }
  std::unique_lock lock(mutex_);
  LineItem& next = from.item(from.taken);
  const auto is_ready = [&] { return next.what == What::ready; };
  if (!until)
    done_.wait(lock, is_ready);
  else if (!done_.wait_until(lock, *until, is_ready))
    return false;
  if (next.error) std::rethrow_exception(next.error);  // and again at the next call
  lock.unlock();
  take(source, next);
  if (from.reader.memory().limited()) {
    std::vector<std::byte>().swap(next.row);
    if (next.mine) from.reader.memory().taken();
  }
  lock.lock();
  next.what = What::empty;
  ++from.taken;
  from.claimed = std::max(from.claimed, from.taken);
  from.room.notify_one();
  return true;
}

/// Puts the next sample into the batch, where it is good and this rank's; its row stays the item's then.
void StreamedFeed::take(size_t source, LineItem& item) {
  StreamLine& from = *lines_[source];
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
    bad_.try_emplace(index, BadSample{index, item.name, item.why});
  } else if (mine) {
    from.good_in_pass = true;
    const auto row = static_cast<size_t>(entry.row = filled_++);
    rows_->put(item.row.data(), arrays_, entry.row, item.weight);
    indices_[row] = index_of(source, number);
    names_[row] = item.name;
  } else if (several()) {
    entry.item.row = std::move(item.row);  // by other shares it may be this rank's
  }
  entry.item.mine = mine;
  entry.item.what = What::ready;
  entry.item.drawn = std::move(item.drawn);
  entry.item.name = std::move(item.name);
  entry.item.weight = item.weight;
  entry.item.why = std::move(item.why);
}

/// The batch made becomes the one given out.
const FeedBatch& StreamedFeed::next() {
  gather(nullptr);
  rows_->finish(arrays_, options_.batch, filled_, {seed_, at_.epoch, at_.position + options_.rank, 0},
                mixer_);
  batch_.samples = std::span(indices_).first(static_cast<size_t>(filled_));
  batch_.names = std::span(names_).first(static_cast<size_t>(filled_));
  batch_.valid = filled_;
  for (const Gathered& each : gathered_) lines_[each.source]->order.apply(each.item.drawn.draw);
  place_ += std::ssize(gathered_);
  gathered_.clear();
  filled_ = 0;
  batch_.start = at_;
  at_.position += together_;
  if (options_.epoch_samples - at_.position < together_) {
    ++at_.epoch;
    at_.position = 0;
  }
  return batch_;
}

}  // namespace

std::unique_ptr<StreamFeed> stream_feed(std::vector<NamedStream> streams, const StreamParts& make_parts,
                                        StreamFeedOptions options) {
  return std::make_unique<StreamedFeed>(std::move(streams), make_parts, std::move(options));
}

}  // namespace millrace::data
