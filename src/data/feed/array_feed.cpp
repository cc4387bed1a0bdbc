#include "data/feed/array_feed.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>

#include "base/crc32c.h"
#include "base/format.h"
#include "data/order/order.h"

namespace millrace::data {
namespace {

class ArrayFeed final : public Feed {
 public:
  ArrayFeed(std::shared_ptr<const ArrayData> data, ArrayFeedOptions options)
      : data_(std::move(data)), options_(std::move(options)), fields_(array_inputs(*data_)) {
    fields_.push_back({"labels", {i64, {Dim::named("batch")}}});
    const auto count = static_cast<int64_t>(data_->labels.size());
    const OrderText text = parse_order(options_.order);
    if (!text.column().empty())
      fail<InputError>("data.order = \"{}\": of {} there is no order by a column", options_.order,
                       data_->unit);
    order_ = text.kind->make(text.words, {count, data_->labels, data_->classes, {}});
    const int64_t length = order_->length();
    samples_ = options_.whole_batches ? length / options_.batch * options_.batch : length;
    if (samples_ == 0)
      fail<InputError>("{}: has {} {}, fewer than a batch of {}; make train.batch smaller", data_->path,
                       length, data_->unit, options_.batch);
    for (const ArrayData::Input& input : data_->inputs) {
      row_bytes_.push_back(static_cast<size_t>(input.rows.bytes() / std::max<int64_t>(count, 1)));
      content_.emplace_back(row_bytes_.back() * static_cast<size_t>(options_.batch));
      digest_ = crc32c(input.rows.data(), static_cast<size_t>(input.rows.bytes()), digest_);
    }
    digest_ = crc32c(data_->labels.data(), data_->labels.size() * sizeof(int64_t), digest_);
    at_ = {options_.seed, 0, 0};
  }

  std::span<const Field> fields() const override { return fields_; }
  size_t inputs() const override { return data_->inputs.size(); }
  const FeedBatch& next() override {
    const auto begin = std::chrono::steady_clock::now();
    batch_.start = at_;
    batch_.valid = std::min(options_.batch, samples_ - at_.position);
    std::vector<Pick> picks(static_cast<size_t>(batch_.valid));
    order_->run(at_.seed, at_.epoch, at_.position, picks);
    const auto rows = static_cast<size_t>(options_.batch);
    targets_.assign(rows, -1);
    labels_.assign(rows, 0);
    for (auto& content : content_) std::fill(content.begin(), content.end(), std::byte{0});
    picked_.clear();
    for (size_t i = 0; i < picks.size(); ++i) {
      copy(i, static_cast<size_t>(picks[i].index));
      picked_.push_back(picks[i].index);
    }
    batch_.arrays.clear();
    for (const auto& content : content_) batch_.arrays.emplace_back(content);
    batch_.arrays.push_back(std::as_bytes(std::span(labels_)));
    batch_.targets = targets_;
    at_.position += options_.batch;
    if (at_.position >= samples_) at_ = {at_.seed, at_.epoch + 1, 0};
    work_.pictures += batch_.valid;
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    work_.cpu_seconds += seconds;
    work_.seconds += seconds;
    return batch_;
  }
  Cursor cursor() const override { return at_; }
  void seek(const Cursor& cursor) override {
    if (cursor.epoch < 0 || cursor.position < 0 || cursor.position > samples_ ||
        (cursor.position % options_.batch != 0 && cursor.position != samples_))
      fail<InputError>("{}: no batch begins at sample {} of {}; was the data changed since?", path(),
                       cursor.position, samples_);
    at_ = cursor.position == samples_ ? Cursor{cursor.seed, cursor.epoch + 1, 0} : cursor;
  }
  int64_t batch_size() const override { return options_.batch; }
  int64_t batches_per_epoch() const override { return (samples_ + options_.batch - 1) / options_.batch; }
  int64_t count() const override { return static_cast<int64_t>(data_->labels.size()); }
  uint32_t digest() const override { return digest_; }
  const std::string& path() const override { return data_->path; }
  const char* unit() const override { return data_->unit; }
  const std::vector<std::string>& classes() const override { return data_->classes; }
  std::vector<std::string> notes() const override { return data_->notes; }
  std::vector<int64_t> samples() const override {
    std::vector<int64_t> list = picked_;
    if (!data_->indices.empty())
      for (int64_t& row : list) row = data_->indices[static_cast<size_t>(row)];
    return list;
  }
  bool cached() const override { return true; }
  int64_t memory() const override {
    const size_t row = std::accumulate(row_bytes_.begin(), row_bytes_.end(), size_t{0});
    return array_memory(count(), static_cast<int64_t>(row), options_.batch);
  }
  LoaderWork work() const override { return work_; }
  std::vector<BadSample> bad_samples() const override { return data_->bad; }
  Tried tried() const override {
    const auto bad = static_cast<int64_t>(data_->bad.size());
    return {data_->tried, bad, bad};
  }

 private:
  void copy(size_t to, size_t from) {
    for (size_t k = 0; k < content_.size(); ++k)
      std::memcpy(content_[k].data() + to * row_bytes_[k],
                  static_cast<const std::byte*>(data_->inputs[k].rows.data()) + from * row_bytes_[k],
                  row_bytes_[k]);
    targets_[to] = labels_[to] = data_->labels[from];
    if (!options_.change) return;
    RandomStream random(at_.seed, 0x6368616e00000000 ^ static_cast<uint64_t>(at_.epoch),
                        static_cast<uint64_t>(at_.position) + to);
    options_.change(
        {reinterpret_cast<float*>(content_[0].data() + to * row_bytes_[0]), row_bytes_[0] / sizeof(float)},
        random);
  }

  std::shared_ptr<const ArrayData> data_;
  ArrayFeedOptions options_;
  std::vector<Field> fields_;
  std::unique_ptr<Order> order_;
  int64_t samples_ = 0;
  uint32_t digest_ = 0;
  std::vector<size_t> row_bytes_;
  std::vector<std::vector<std::byte>> content_;
  std::vector<int64_t> targets_, labels_, picked_;
  Cursor at_;
  FeedBatch batch_;
  LoaderWork work_;
};

}  // namespace

int64_t array_memory(int64_t rows, int64_t row_bytes, int64_t batch) {
  // Of a row its label, as it is read and as it is kept (or its sample's number); of a batch labels, targets, rows picked.
  constexpr int64_t each = 2 * sizeof(int64_t), in_batch = 3 * sizeof(int64_t) + sizeof(Pick);
  return rows * (row_bytes + each) + batch * (row_bytes + in_batch);
}

std::vector<Field> array_inputs(const ArrayData& data) {
  std::vector<Field> fields;
  for (const ArrayData::Input& input : data.inputs) {
    Type type = input.rows.type();
    type.shape[0] = Dim::named("batch");
    fields.push_back({input.name, type});
  }
  return fields;
}

std::unique_ptr<Feed> array_feed(std::shared_ptr<const ArrayData> data, ArrayFeedOptions options) {
  return std::make_unique<ArrayFeed>(std::move(data), std::move(options));
}

}  // namespace millrace::data
