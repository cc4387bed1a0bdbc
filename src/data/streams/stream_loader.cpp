// The loader of streams. One thread reads and draws samples, others decode them, in a ring of samples; the consumer takes them
// in the order drawn, leaves out bad ones and fills its batch. So a batch is the next good samples of the order, whatever the
// number of threads, and which are bad need not be known before.
#include <chrono>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>

#include "base/format.h"
#include "base/thread_pool.h"
#include "data/loader_state.h"
#include "data/streams/stream_pictures.h"
#include "data/streams/stream_reader.h"

namespace millrace::data {
namespace {

/// What the loader's source() is: a name and classes.
class Described final : public Source {
 public:
  Described(const std::string& path, std::vector<std::string> classes) {
    path_ = path;
    classes_ = std::move(classes);
  }
  int64_t count() const override { return 0; }
  int64_t label(int64_t) const override { return -1; }
  std::string name(int64_t index) const override { return fmt::format("{} (sample {})", path_, index); }
  Sample read(int64_t) const override { fail<InternalError>("{}: a stream is not read by index", path_); }
};

class Streamed final : public Loader::State {
 public:
  Streamed(std::unique_ptr<Stream> stream, std::vector<std::string> classes, LoaderOptions given)
      : options_(std::move(given)),
        augmenter_(options_.augment),
        mixer_(options_.mix),
        described_(stream->path(), std::move(classes)),
        reader_(std::move(stream), stream_buffer(options_.order), options_.seed),
        pictures_(reader_.stream(), described_.classes(), options_, augmenter_),
        order_(reader_.order()),
        seed_(options_.seed) {
    check();
    find_extent();
    augmenter_.check(pictures_.extent());
    result_ = augmenter_.result(pictures_.extent());
    threads_wanted_ = options_.threads > 0 ? options_.threads : available_cpus();
    ring_.resize(static_cast<size_t>(std::max<int64_t>(options_.batch, 2 * threads_wanted_)) + 2);
    at_ = {seed_, 0, 0};
  }
  ~Streamed() override { halt(); }

  const Batch& next() override {
    gather(nullptr);
    full_ = false;
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
  Cursor cursor() const override { return {seed_, at_.epoch, at_.position, order_.state()}; }
  void seek(const Cursor& cursor) override;
  void skip(int64_t batches) override {
    for (; batches > 0; --batches) next();
  }

  const Source& source() const override { return described_; }
  const Extent& extent() const override { return result_; }
  int64_t batch_size() const override { return options_.batch; }
  int64_t samples_per_epoch() const override {
    return options_.epoch_samples / options_.batch * options_.batch;
  }
  int64_t batches_per_epoch() const override { return options_.epoch_samples / options_.batch; }
  bool streamed() const override { return true; }
  bool mixed() const override { return !mixer_.empty(); }
  std::vector<BadSample> bad_samples() const override {
    std::vector<BadSample> list;
    for (const auto& [number, bad] : bad_) list.push_back(bad);
    return list;
  }
  Tried tried() const override {
    const auto bad = static_cast<int64_t>(bad_.size());
    return {tried_, bad, bad};
  }
  void set_shares(std::span<const double>) override {
    fail<InputError>("a stream is one source, which has no weight");
  }
  std::vector<uint8_t> first_pictures(int64_t most) override;

 private:
  using Until = std::chrono::steady_clock::time_point;
  struct Item {
    enum class What : uint8_t { empty, drawn, decoding, ready } what = What::empty;
    StreamReader::Drawn drawn;
    StreamedPicture picture;
    std::vector<uint8_t> planes;
    std::string why;  // it is bad
    std::exception_ptr error;
  };

  void check() const;
  void find_extent();
  void start();
  void halt();
  void read();
  void work();
  void decode(Item& item, PictureReader& reader, std::vector<uint8_t>& decoded,
              std::vector<uint8_t>& between);
  bool gather(const Until* until);
  void take(Item& item);
  void hand_over();
  Item& item(uint64_t number) { return ring_[number % ring_.size()]; }

  LoaderOptions options_;
  Augmenter augmenter_;
  Mixer mixer_;
  Described described_;
  StreamReader reader_;  // the reading thread's, while there is one
  StreamPictures pictures_;
  Extent result_;
  int threads_wanted_ = 1;

  // The consumer's.
  StreamOrder order_;  // after the samples of the batches given out
  std::vector<StreamDraw> draws_;
  Batch batch_;
  bool full_ = false;  // batch_ was made by ready() and not given out
  int64_t good_ = 0;   // samples in the batch so far
  uint64_t seed_;
  Cursor at_;  // of the next batch to give out, without the state
  std::vector<uint8_t> scratch_;
  std::map<int64_t, BadSample> bad_;
  int64_t tried_ = 0;

  std::mutex mutex_;  // guards all below, but not the content of items that are being drawn or decoded
  std::condition_variable room_, work_, done_;
  std::vector<Item> ring_;
  uint64_t drawn_ = 0, claimed_ = 0, taken_ = 0;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

void Streamed::check() const {
  if (options_.memory > 0)
    fail<InputError>("{}: the memory of a stream has no limit: leave it out", described_.path());
  if (options_.batch < 1) fail<InputError>("batch = {}: a batch has at least one sample", options_.batch);
  if (options_.ranks != 1 || !options_.parts.empty() || !options_.sample_weight.empty())
    fail<InputError>(
        "{}: a stream has no ranks, no mixture and no column of weights: those need random access",
        described_.path());
  if (options_.epoch_samples < options_.batch)
    fail<InputError>("{}: an epoch of {} samples does not fill a batch of {}", described_.path(),
                     options_.epoch_samples, options_.batch);
  if (described_.classes().empty())
    fail<InputError>("{}: the classes of a stream must be known before its end: none are given",
                     described_.path());
}

/// The first good picture decides on the size.
void Streamed::find_extent() {
  constexpr size_t most = 1000;
  std::string first_reason = "it is empty";
  for (size_t i = 0; i < most; ++i) {
    const auto& head = reader_.head(i + 1);
    if (head.size() <= i) break;
    const std::string why = pictures_.find_extent(head[i]);
    if (why.empty()) return;
    if (i == 0) first_reason = why;
  }
  fail<InputError>("{}: none of its first {} samples is a picture with a class (the first: {})",
                   described_.path(), reader_.head(0).size(), first_reason);
}

std::vector<uint8_t> Streamed::first_pictures(int64_t most) {
  if (!threads_.empty()) fail<InternalError>("the stream is being read already");
  std::vector<uint8_t> all;
  PictureReader reader;
  StreamedPicture picture;
  const size_t size = pictures_.extent().bytes();
  const auto& head = reader_.head(static_cast<size_t>(most));
  for (size_t i = 0; i < std::min(head.size(), static_cast<size_t>(most)); ++i) {
    all.resize(all.size() + size);
    if (!pictures_.load(head[i], nullptr, reader, picture, all.data() + all.size() - size).empty())
      all.resize(all.size() - size);
  }
  return all;
}

void Streamed::start() {
  if (!threads_.empty()) return;
  stop_ = false;
  try {
    threads_.emplace_back([this] { read(); });
    for (int i = 0; i < threads_wanted_; ++i) threads_.emplace_back([this] { work(); });
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
  reader_.stop();
  room_.notify_all();
  work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  reader_.stopped();
}

void Streamed::seek(const Cursor& cursor) {
  if (cursor.epoch < 0 || cursor.position < 0 || cursor.position > samples_per_epoch())
    fail<InputError>("{}: no sample {} of epoch {} in the {} of data.epoch_samples", described_.path(),
                     cursor.position, cursor.epoch, samples_per_epoch());
  StreamOrder order(order_.capacity());
  order.restore(described_.path(), cursor.state);
  halt();
  reader_.seek(cursor.seed, cursor.state);
  order_ = std::move(order);
  for (Item& each : ring_) each = {};
  drawn_ = claimed_ = taken_ = 0;
  draws_.clear();
  good_ = 0;
  full_ = false;
  seed_ = cursor.seed;
  at_ = {seed_, cursor.epoch, cursor.position};
}

void Streamed::read() {
  const ThreadTimes times;
  std::unique_lock lock(mutex_);
  while (true) {
    room_.wait(lock, [&] { return stop_ || drawn_ < taken_ + ring_.size(); });
    if (stop_) return;
    Item& next = item(drawn_);
    lock.unlock();
    std::exception_ptr error;
    const ThreadTimes::Times begin = times.now();
    try {
      next.drawn = reader_.next();
      worked.add(0, begin, times.now());
    } catch (const StreamStopped&) {
      return;
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    next.error = error;
    next.what = error ? Item::What::ready : Item::What::drawn;
    ++drawn_;
    if (error) {
      done_.notify_one();
      return;
    }
    work_.notify_one();
  }
}

void Streamed::work() {
  PictureReader reader;
  std::vector<uint8_t> decoded, between;
  const ThreadTimes times;
  std::unique_lock lock(mutex_);
  while (true) {
    work_.wait(lock,
               [&] { return stop_ || (claimed_ < drawn_ && item(claimed_).what == Item::What::drawn); });
    if (stop_) return;
    Item& mine = item(claimed_++);
    mine.what = Item::What::decoding;
    lock.unlock();
    const ThreadTimes::Times begin = times.now();
    try {
      decode(mine, reader, decoded, between);
    } catch (...) {
      mine.error = std::current_exception();
    }
    worked.add(1, begin, times.now());
    lock.lock();
    mine.what = Item::What::ready;
    done_.notify_one();
  }
}

void Streamed::decode(Item& item, PictureReader& reader, std::vector<uint8_t>& decoded,
                      std::vector<uint8_t>& between) {
  const StreamRecord& record = item.drawn.record;
  const SampleKey key{seed_, item.drawn.pass, item.drawn.number, record.at.number};
  const bool direct = augmenter_.nothing_to_apply();
  item.planes.resize(result_.bytes());
  decoded.resize(pictures_.extent().bytes());
  item.why = pictures_.load(record, &key, reader, item.picture, direct ? item.planes.data() : decoded.data());
  if (item.why.empty() && !direct)
    augmenter_.apply(pictures_.extent(), decoded.data(), item.planes.data(), key, between);
}

/// Fills the batch as far as samples are ready, or waits for them; true when it is full.
bool Streamed::gather(const Until* until) {
  if (full_) return true;
  start();
  while (good_ < options_.batch) {
    std::unique_lock lock(mutex_);
    Item& next = item(taken_);
    const auto is_ready = [&] { return next.what == Item::What::ready; };
    if (!until)
      done_.wait(lock, is_ready);
    else if (!done_.wait_until(lock, *until, is_ready))
      return false;
    if (next.error) std::rethrow_exception(next.error);  // and again at the next call
    lock.unlock();
    take(next);
    lock.lock();
    next.what = Item::What::empty;
    ++taken_;
    room_.notify_one();
  }
  batch_.valid = options_.batch;
  if (!mixer_.empty()) mix_batch(mixer_, result_, batch_, {seed_, at_.epoch, at_.position, 0}, scratch_);
  return full_ = true;
}

void Streamed::take(Item& item) {
  const int64_t number = item.drawn.record.at.number;
  tried_ = std::max(tried_, number + 1);
  draws_.push_back(std::move(item.drawn.draw));
  item.drawn.record.bytes = {};
  if (!item.why.empty()) {
    bad_.try_emplace(number, BadSample{number, item.picture.name, item.why});
    return;
  }
  const size_t size = result_.bytes(), count = static_cast<size_t>(options_.batch);
  if (good_ == 0) {
    batch_.pictures.resize(count * size);
    batch_.labels.resize(count);
    batch_.indices.resize(count);
    batch_.names.resize(count);
  }
  const auto place = static_cast<size_t>(good_++);
  std::copy(item.planes.begin(), item.planes.end(),
            batch_.pictures.begin() + static_cast<ptrdiff_t>(place * size));
  batch_.labels[place] = item.picture.label;
  batch_.indices[place] = number;
  batch_.names[place] = std::move(item.picture.name);
}

/// The batch made becomes the one given out.
void Streamed::hand_over() {
  for (const StreamDraw& draw : draws_) order_.apply(draw);
  draws_.clear();
  good_ = 0;
  batch_.start = at_;
  at_.position += options_.batch;
  if (samples_per_epoch() - at_.position < options_.batch) {
    ++at_.epoch;
    at_.position = 0;
  }
}

}  // namespace

Loader::Loader(std::unique_ptr<Stream> stream, std::vector<std::string> classes, LoaderOptions options)
    : state_(std::make_unique<Streamed>(std::move(stream), std::move(classes), std::move(options))) {}

}  // namespace millrace::data
