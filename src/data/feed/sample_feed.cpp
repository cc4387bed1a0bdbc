#include "data/feed/sample_feed.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <mutex>
#include <optional>

#include "base/crc32c.h"
#include "base/format.h"
#include "base/mapped_file.h"
#include "base/seconds_since.h"
#include "base/size_text.h"
#include "base/thread_pool.h"
#include "data/feed/aligned_bytes.h"
#include "data/feed/prefetch.h"
#include "data/feed/readings.h"
#include "data/feed/rows_ahead.h"
#include "data/feed/traffic.h"

namespace millrace::data {
namespace {

std::vector<std::shared_ptr<const Part>> parts_alone(const std::vector<NamedPart>& named) {
  std::vector<std::shared_ptr<const Part>> parts;
  for (const NamedPart& each : named) parts.push_back(each.part);
  return parts;
}

class SampleFeed final : public Feed, public Prefetch::Source {
 public:
  SampleFeed(std::shared_ptr<const Dataset> samples, std::vector<NamedPart> parts,
             std::unique_ptr<RowPlan> rows, FeedOptions options)
      : samples_(std::move(samples)),
        parts_(std::move(parts)),
        rows_(std::move(rows)),
        options_(std::move(options)),
        path_(samples_ ? samples_->path() : options_.path),
        weighted_(options_.weighted || !options_.weights.empty()),
        fields_(feed_fields(parts_, weighted_)) {
    check_options();
    lay_out();
    const int threads = options_.threads > 0 ? options_.threads : available_cpus();
    readings_.emplace(samples_, parts_alone(parts_),
                      ReadingsOptions{threads, most_kept(), options_.unit, options_.progress});
    const bool copies = only_copies() && (readings_->kept() || !readings_->reads());
    slots_ = std::vector<Slot>(copies ? slots_wanted(1, 1) : slots_wanted(2, threads + 2));
    if (copies)
      own_ = std::make_unique<RowWorker>(readings_->reader());
    else
      ahead_.emplace(*this, threads, slots_.size());
    if (RemoteCache* const cache = far_cache()) rows_ahead_.emplace(*samples_, *cache);
    start({options_.seed, 0, 0});
  }

  std::span<const Field> fields() const override { return fields_; }
  std::vector<int64_t> lengths() const override { return rows_->lengths(); }
  const FeedBatch& next() override;
  bool ready(double seconds) override { return !ahead_ || ahead_->ready(seconds); }
  Cursor cursor() const override { return take_at_; }
  void seek(const Cursor& cursor) override;
  void skip(int64_t batches) override;
  void set_shares(std::span<const double> shares) override;

  int64_t batch_size() const override { return options_.batch; }
  int64_t batches_per_epoch() const override { return (epoch_length_ + together_ - 1) / together_; }
  int64_t samples_per_epoch() const override { return epoch_length_; }
  int64_t count() const override { return samples_ ? samples_->count() : rows_->count(); }
  uint32_t digest() const override;
  const std::string& path() const override { return path_; }
  const char* unit() const override { return options_.unit; }
  std::vector<std::string> notes() const override;
  std::vector<std::string> rows() const override;
  bool cached() const override { return readings_->kept() || !readings_->reads(); }
  int64_t cache_needed() const override { return readings_->needed(); }
  int64_t sample_bytes() const override { return readings_->sample_bytes(); }
  int64_t memory() const override {
    return readings_->memory() + parts_memory() + static_cast<int64_t>(slots_.size()) * batch_memory_;
  }
  LoaderWork work() const override { return ahead_ ? ahead_->work() : own_work_; }
  std::vector<BadSample> bad_samples() const override { return readings_->bad_samples(); }
  Tried tried() const override { return readings_->tried(); }

 private:
  struct Slot {
    AlignedBytes memory;
    std::vector<size_t> rows;  // bytes of a row of each array
    std::vector<int64_t> samples;
    FeedBatch batch;
    uint64_t number = 0;  // of the batch, since start()
  };
  struct RowWorker final : Worker {
    explicit RowWorker(Readings::Reader own) : reader(std::move(own)) {}
    Readings::Reader reader;
    std::vector<RowPick> picks;
    std::vector<std::byte*> places;
  };

  void check_options() const;
  void lay_out();
  bool only_copies() const {
    return std::all_of(parts_.begin(), parts_.end(),
                       [](const NamedPart& each) { return each.part->only_copies(); });
  }
  int64_t parts_memory() const {
    int64_t sum = 0;
    for (const NamedPart& each : parts_) sum += each.part->memory();
    return sum;
  }
  int64_t most_kept() const;
  size_t slots_wanted(int64_t least, int64_t most) const;

  void start(Cursor cursor);
  /// Rows of all ranks together.
  int64_t valid_at(const Cursor& cursor) const {
    return std::min(together_, epoch_length_ - cursor.position);
  }
  /// With drop_last a restored position need not be a multiple of the batch: what is left over is dropped as
  /// well.
  bool over(const Cursor& cursor) const {
    return epoch_length_ - cursor.position < (options_.drop_last ? together_ : 1);
  }
  Cursor after(Cursor cursor) const;

  std::unique_ptr<Worker> worker() const override { return std::make_unique<RowWorker>(readings_->reader()); }
  void claim(size_t slot) override {
    slots_[slot].batch.start = claim_at_;
    slots_[slot].number = claimed_++;
    claim_at_ = after(std::move(claim_at_));
  }
  int64_t fill(size_t slot, Worker& worker) override;
  void prepare(Slot& slot) const;
  int64_t own_valid_at(const Cursor& cursor) const {
    return std::max<int64_t>(0, (valid_at(cursor) - options_.rank + options_.ranks - 1) / options_.ranks);
  }
  void take_picks(const Cursor& at, std::vector<RowPick>& picks) const;
  /// Null where samples are here, or kept.
  RemoteCache* far_cache() const {
    return readings_->reads() && !readings_->kept() ? remote_cache_of(*samples_) : nullptr;
  }
  void put_row(Slot& slot, int64_t i, RowWorker& worker);
  void finish(Slot& slot, RowWorker& worker) const;
  std::byte* array(const Slot& slot, size_t field) const { return slot.memory.data() + offsets_[field]; }
  /// Where row i of the fields of a part begins.
  std::span<std::byte* const> row_places(const Slot& slot, size_t part, int64_t i, RowWorker& worker) const;

  std::shared_ptr<const Dataset> samples_;
  std::vector<NamedPart> parts_;
  std::unique_ptr<RowPlan> rows_;
  FeedOptions options_;
  std::string path_;
  bool weighted_;
  std::vector<Field> fields_;
  std::vector<size_t> firsts_;   // of each part's fields, and one more
  std::vector<size_t> offsets_;  // of arrays in a slot's memory
  size_t slot_bytes_ = 0;
  int64_t batch_memory_ = 0;
  int64_t together_ = 0;  // rows of a batch of all ranks
  int64_t epoch_length_ = 0;
  std::optional<Readings> readings_;
  mutable std::once_flag digested_;
  mutable uint32_t digest_ = 0;

  std::vector<Slot> slots_;
  Cursor take_at_, claim_at_;
  uint64_t claimed_ = 0;
  std::optional<RowsAhead> rows_ahead_;
  const Slot* at_hand_ = nullptr;   // of what next() returned last
  std::unique_ptr<RowWorker> own_;  // where next() makes batches itself
  LoaderWork own_work_;
  std::optional<Prefetch> ahead_;  // last: its threads end before the rest does
};

void SampleFeed::check_options() const {
  if (options_.batch < 1) fail<InputError>("batch = {}: a batch has at least one sample", options_.batch);
  if (options_.ranks < 1 || options_.rank < 0 || options_.rank >= options_.ranks)
    fail<InputError>("rank {} of {}: ranks are counted from 0 to one less than there are", options_.rank,
                     options_.ranks);
  const auto& weights = options_.weights;
  if (!weights.empty() && static_cast<int64_t>(weights.size()) != count())
    fail<InputError>("{}: {} weights for {} {}", path_, weights.size(), count(), options_.unit);
  for (size_t i = 0; i < weights.size(); ++i)
    if (!(weights[i] >= 0) || !std::isfinite(weights[i]))
      fail<InputError>("{}: its weight is {}: a weight is a number from 0 on",
                       samples_ ? samples_->name(static_cast<int64_t>(i)) : path_, weights[i]);
  for (size_t a = 0; a < fields_.size(); ++a)
    for (size_t b = 0; b < a; ++b)
      if (fields_[a].name == fields_[b].name)
        fail<InternalError>("{}: two arrays are called '{}'", path_, fields_[a].name);
}

/// Where things lie in a batch, and how long an epoch is.
void SampleFeed::lay_out() {
  together_ = options_.batch * options_.ranks;
  const int64_t count = rows_->count();
  epoch_length_ = options_.drop_last ? count / together_ * together_ : count;
  if (epoch_length_ == 0)
    fail<InputError>("{}: its {} {} do not fill a batch of {}; make the batch smaller, such as {}", path_,
                     count, options_.unit, together_,
                     std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(1, count / 8))));
  rows_->set_epoch(epoch_length_);
  firsts_.push_back(0);
  for (const NamedPart& each : parts_) {
    firsts_.push_back(firsts_.back() + each.part->fields().size());
  }
  const std::vector<int64_t> lengths = rows_->lengths();
  const int64_t longest = lengths.empty() ? 0 : lengths.back();
  for (const Field& field : fields_) {
    offsets_.push_back(slot_bytes_);
    slot_bytes_ +=
        AlignedBytes::rounded(row_bytes(field.type, longest) * static_cast<size_t>(options_.batch));
  }
  constexpr size_t others = sizeof(int64_t) + sizeof(RowPick);  // numbers of samples, rows of all ranks
  batch_memory_ = static_cast<int64_t>(slot_bytes_) + together_ * static_cast<int64_t>(others);
}

int64_t SampleFeed::most_kept() const {
  if (options_.memory <= 0) return options_.cache_bytes;
  // One batch with the model and one ahead there must be.
  const int64_t batches = only_copies() ? 1 : 2;
  return std::min(options_.cache_bytes, options_.memory - parts_memory() - batches * batch_memory_);
}

size_t SampleFeed::slots_wanted(int64_t least, int64_t most) const {
  if (options_.memory <= 0) return static_cast<size_t>(most);
  const int64_t left = options_.memory - readings_->memory() - parts_memory(), fit = left / batch_memory_;
  if (fit < least)
    fail<InputError>(
        "{}: data.memory leaves {} for {}, and {} of {} take {}: raise it, or make the batch smaller", path_,
        memory_text(std::max<int64_t>(left, 0)), options_.unit, least == 1 ? "a batch" : "two batches",
        options_.batch, memory_text(least * batch_memory_));
  return static_cast<size_t>(std::min(most, fit));
}

void SampleFeed::start(Cursor cursor) {
  rows_->complete(cursor);
  claim_at_ = take_at_ = std::move(cursor);
  at_hand_ = nullptr;
  claimed_ = 0;
  if (rows_ahead_)
    rows_ahead_->start(
        [this, at = take_at_, picks = std::vector<RowPick>()](std::vector<int64_t>& samples) mutable {
          take_picks(at, picks);
          for (const RowPick& row : picks)
            if (row.pick.index >= 0) samples.push_back(row.pick.index);
          at = after(std::move(at));
          return true;
        });
  if (ahead_) ahead_->start();
}

Cursor SampleFeed::after(Cursor cursor) const {
  const int64_t count = valid_at(cursor);
  rows_->advance(cursor, count);
  cursor.position += count;
  if (over(cursor)) {
    ++cursor.epoch;
    cursor.position = 0;
  }
  return cursor;
}

const FeedBatch& SampleFeed::next() {
  size_t slot = 0;
  if (ahead_) {
    slot = ahead_->next();
  } else {
    const auto begin = std::chrono::steady_clock::now();
    at_hand_ = nullptr;
    slots_[0].batch.start = take_at_;
    own_work_.samples += fill(0, *own_);
    require_mapped_files();  // or zeros could have been taken for data
    const double seconds = seconds_since(begin);
    own_work_.cpu_seconds += seconds;
    own_work_.seconds += seconds;
  }
  take_at_ = after(std::move(take_at_));
  at_hand_ = &slots_[slot];
  return at_hand_->batch;
}

void SampleFeed::seek(const Cursor& cursor) {
  if (cursor.epoch < 0 || cursor.position < 0 || cursor.position > epoch_length_)
    fail<InputError>("{}: no sample {} of epoch {} in its {} {}; was the data changed since?", path_,
                     cursor.position, cursor.epoch, epoch_length_, options_.unit);
  if (rows_->whole_batches() && cursor.position % together_ != 0 && cursor.position != epoch_length_)
    fail<InputError>("{}: no batch begins at {} of {} of epoch {}; was the data or the batch changed since?",
                     path_, cursor.position, epoch_length_, cursor.epoch);
  Cursor to = cursor;
  rows_->complete(to);
  if (ahead_) ahead_->halt();
  if (over(to)) {
    ++to.epoch;
    to.position = 0;
  }
  start(std::move(to));
}

void SampleFeed::skip(int64_t batches) {
  Cursor to = cursor();
  if (ahead_) ahead_->halt();
  for (; batches > 0; --batches) to = after(std::move(to));
  start(std::move(to));
}

void SampleFeed::set_shares(std::span<const double> shares) {
  const Cursor here = cursor();
  if (ahead_) ahead_->halt();
  std::exception_ptr refused;
  try {
    rows_->set_shares(shares);
  } catch (const InputError& error) {
    refused = std::make_exception_ptr(InputError(fmt::format("{}: {}", path_, error.what())));
  }
  start(here);
  if (refused) std::rethrow_exception(refused);
}

uint32_t SampleFeed::digest() const {
  std::call_once(digested_, [&] {
    digest_ = readings_->digest();
    for (const NamedPart& each : parts_)
      if (const uint32_t own = each.part->digest(); own != 0) digest_ = crc32c(&own, sizeof own, digest_);
  });
  return digest_;
}

std::vector<std::string> SampleFeed::notes() const {
  std::vector<std::string> lines;
  if (samples_) lines = samples_->notes();
  lines.insert(lines.end(), options_.notes.begin(), options_.notes.end());
  if (RemoteCache* const cache = rows_ahead_ ? remote_cache_of(*samples_) : nullptr)
    if (std::string advice = traffic_advice(*samples_, *cache, *rows_, options_.seed, epoch_length_);
        !advice.empty())
      lines.push_back(std::move(advice));
  for (const std::string& line : rows_->describe()) lines.push_back(fmt::format("{}: {}", path_, line));
  return lines;
}

std::vector<std::string> SampleFeed::rows() const {
  if (!at_hand_ || !options_.describe) return {};
  const FeedBatch& batch = at_hand_->batch;
  const auto all = options_.describe(*rows_, batch.start, valid_at(batch.start));
  std::vector<std::string> lines;
  for (auto i = static_cast<size_t>(options_.rank); i < all.size(); i += static_cast<size_t>(options_.ranks))
    lines.push_back(all[i]);
  return lines;
}

// ---- making a batch

int64_t SampleFeed::fill(size_t number, Worker& any) {
  Slot& slot = slots_[number];
  auto& worker = static_cast<RowWorker&>(any);
  prepare(slot);
  FeedBatch& batch = slot.batch;
  if (rows_ahead_) rows_ahead_->reach(slot.number);
  take_picks(batch.start, worker.picks);
  constexpr int64_t ahead = 12;
  for (int64_t i = 0; i < batch.valid; ++i) {
    if (i + ahead < batch.valid) readings_->fetch(worker.picks[static_cast<size_t>(i + ahead)].pick.index);
    put_row(slot, i, worker);
  }
  const auto none = std::find(slot.samples.begin(), slot.samples.end(), int64_t{-1});
  if (none != slot.samples.end()) slot.samples.clear();
  batch.samples = slot.samples;
  for (int64_t i = batch.valid; i < options_.batch; ++i) {
    const Row row{{batch.start.seed, batch.start.epoch, -1, -1}, batch.length, {}};
    for (size_t p = 0; p < parts_.size(); ++p) parts_[p].part->pad(row, row_places(slot, p, i, worker));
    if (weighted_) reinterpret_cast<float*>(array(slot, fields_.size() - 1))[i] = 0;
  }
  finish(slot, worker);
  if (rows_ahead_) rows_ahead_->done(slot.number);
  return batch.valid;
}

void SampleFeed::prepare(Slot& slot) const {
  if (slot.memory.size() == 0) slot.memory = AlignedBytes(slot_bytes_);
  FeedBatch& batch = slot.batch;
  batch.valid = own_valid_at(batch.start);
  batch.length = rows_->length(batch.start);
  slot.samples.assign(static_cast<size_t>(batch.valid), -1);
  batch.arrays.clear();
  slot.rows.clear();
  for (size_t f = 0; f < fields_.size(); ++f) {
    slot.rows.push_back(row_bytes(fields_[f].type, batch.length));
    batch.arrays.emplace_back(array(slot, f), slot.rows[f] * static_cast<size_t>(options_.batch));
  }
}

/// The rows of this rank.
void SampleFeed::take_picks(const Cursor& at, std::vector<RowPick>& picks) const {
  picks.resize(static_cast<size_t>(valid_at(at)));
  for (RowPick& row : picks) {
    row.pick = {-1, 1};
    row.extracts.clear();
  }
  rows_->take(at, picks);
  const auto ranks = static_cast<size_t>(options_.ranks), rank = static_cast<size_t>(options_.rank),
             own = static_cast<size_t>(own_valid_at(at));
  for (size_t i = 0; i < own && ranks > 1; ++i) std::swap(picks[i], picks[i * ranks + rank]);
  picks.resize(own);
}

std::span<std::byte* const> SampleFeed::row_places(const Slot& slot, size_t part, int64_t i,
                                                   RowWorker& worker) const {
  worker.places.clear();
  for (size_t f = firsts_[part]; f < firsts_[part + 1]; ++f)
    worker.places.push_back(array(slot, f) + slot.rows[f] * static_cast<size_t>(i));
  return worker.places;
}

void SampleFeed::put_row(Slot& slot, int64_t i, RowWorker& worker) {
  const FeedBatch& batch = slot.batch;
  const RowPick& picked = worker.picks[static_cast<size_t>(i)];
  Row row{{batch.start.seed, batch.start.epoch, batch.start.position + i * options_.ranks + options_.rank,
           picked.pick.index},
          batch.length,
          picked.extracts};
  int64_t index = picked.pick.index;
  std::span<std::byte* const> stored = worker.reader.stored;
  if (index >= 0) {
    for (size_t p = 0; p < parts_.size() && !readings_->kept(); ++p)
      if (parts_[p].part->reads_rows()) worker.reader.stored[p] = row_places(slot, p, i, worker)[0];
    stored = readings_->get(index, row.key, worker.reader);
    if (index != picked.pick.index && !picked.extracts.empty())
      fail<InputError>("{}: cannot be read, and no other can stand in a row of its text; leave it out",
                       samples_->name(picked.pick.index));
  } else if (readings_->reads()) {
    fail<InternalError>("{}: a row is no sample, and a part reads samples", path_);
  }
  slot.samples[static_cast<size_t>(i)] = row.key.index = index;
  for (size_t p = 0; p < parts_.size(); ++p)
    if (const auto places = row_places(slot, p, i, worker); places.empty() || stored[p] != places[0])
      parts_[p].part->put(stored[p], row, worker.reader.scratch[p].get(), places);
  if (!weighted_) return;
  const double own = options_.weights.empty() || index < 0 ? 1 : options_.weights[static_cast<size_t>(index)];
  reinterpret_cast<float*>(array(slot, fields_.size() - 1))[i] = static_cast<float>(picked.pick.weight * own);
}

/// What needs all rows.
void SampleFeed::finish(Slot& slot, RowWorker& worker) const {
  const FeedBatch& batch = slot.batch;
  std::vector<std::byte*> arrays;
  for (size_t f = 0; f < fields_.size(); ++f) arrays.push_back(array(slot, f));
  finish_batch(parts_, arrays, options_.batch, batch.valid, batch.length,
               {batch.start.seed, batch.start.epoch, batch.start.position + options_.rank, 0},
               worker.reader.scratch);
}

}  // namespace

std::vector<Field> feed_fields(const std::vector<NamedPart>& parts, bool weighted) {
  std::vector<Field> fields, mixed;
  for (const NamedPart& each : parts)
    for (const Field& field : each.part->fields()) {
      fields.push_back({each.prefix + field.name, field.type});
      if (each.target) mixed.push_back({"mixed." + each.prefix + field.name, field.type});
    }
  const Type numbers{f32, {Dim::named("batch")}};
  if (mixing_part(parts)) {
    fields.insert(fields.end(), mixed.begin(), mixed.end());
    fields.push_back({"mix", numbers});
  }
  if (weighted) fields.push_back({"weights", numbers});
  return fields;
}

std::unique_ptr<Feed> sample_feed(std::shared_ptr<const Dataset> samples, std::vector<NamedPart> parts,
                                  std::unique_ptr<RowPlan> rows, FeedOptions options) {
  return std::make_unique<SampleFeed>(std::move(samples), std::move(parts), std::move(rows),
                                      std::move(options));
}

}  // namespace millrace::data
