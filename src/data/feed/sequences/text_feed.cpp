#include "data/feed/sequences/text_feed.h"

#include <algorithm>
#include <chrono>

#include "base/crc32c.h"
#include "base/format.h"
#include "base/philox.h"

namespace millrace::data {
namespace {

std::span<const std::byte> bytes_of(const auto& values) { return std::as_bytes(std::span(values)); }

class TextFeed : public Feed {
 public:
  TextFeed(std::shared_ptr<const Texts> texts, TextFeedOptions options)
      : texts_(std::move(texts)), options_(std::move(options)), labelled_(!texts_->labels.empty()) {
    if (labelled_) options_.spans.reset();
    options_.plan.next_token = !labelled_ && !options_.spans;
    plan_ = make_plan();
    fields_ = text_inputs(options_.rows);
    inputs_ = fields_.size();
    const Dim batch = Dim::named("batch"), length = Dim::named("length");
    if (labelled_) {
      fields_.push_back({"labels", {i64, {batch}}});
    } else {
      fields_.push_back({"targets", {i64, {batch, length}}});
      if (plan_->padded() || options_.spans) fields_.push_back({"counted", {f32, {batch, length}}});
    }
    at_ = {options_.seed, 0, 0};
    plan_->begin(at_.seed, at_.epoch);
    std::vector<int64_t> part(4096);
    for (int64_t at = 0; at < texts_->tokens.size(); at += 4096) {
      part.resize(static_cast<size_t>(std::min<int64_t>(4096, texts_->tokens.size() - at)));
      texts_->tokens.get(at, part);
      digest_ = crc32c(part.data(), part.size() * sizeof part[0], digest_);
    }
  }

  std::span<const Field> fields() const override { return fields_; }
  size_t inputs() const override { return inputs_; }
  std::vector<int64_t> lengths() const override { return plan_->lengths(); }

  const FeedBatch& next() override {
    const auto begin = std::chrono::steady_clock::now();
    fill();
    at_ = after(at_);
    if (at_.epoch != batch_.start.epoch) plan_->begin(at_.seed, at_.epoch);
    work_.pictures += batch_.valid;
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    work_.cpu_seconds += seconds;
    work_.seconds += seconds;
    return batch_;
  }

  Cursor cursor() const override { return at_; }
  void seek(const Cursor& cursor) override {
    if (cursor.epoch < 0 || cursor.position < 0 || cursor.position > plan_->rows() ||
        (cursor.position % options_.plan.batch != 0 && cursor.position != plan_->rows()))
      fail<InputError>(
          "{}: no batch begins at row {} of epoch {} of its {} rows; was the data changed since?", path(),
          cursor.position, cursor.epoch, plan_->rows());
    at_ = cursor.position == plan_->rows() ? Cursor{cursor.seed, cursor.epoch + 1, 0} : cursor;
    plan_->begin(at_.seed, at_.epoch);
  }

  int64_t batch_size() const override { return options_.plan.batch; }
  int64_t batches_per_epoch() const override {
    return (plan_->rows() + options_.plan.batch - 1) / options_.plan.batch;
  }
  int64_t count() const override { return options_.rows == Rows::windows ? plan_->rows() : texts_->count(); }
  uint32_t digest() const override { return digest_; }
  const std::string& path() const override { return texts_->path; }
  const char* unit() const override { return options_.rows == Rows::padded ? "texts" : "rows"; }
  const std::vector<std::string>& classes() const override { return texts_->classes; }
  double bytes_per_target() const override {
    return labelled_ || options_.spans || texts_->tokens.size() == 0
               ? 0
               : static_cast<double>(texts_->bytes) / static_cast<double>(texts_->tokens.size());
  }
  std::vector<std::string> notes() const override {
    std::vector<std::string> lines = options_.notes;
    for (const std::string& line : plan_->describe()) lines.push_back(fmt::format("{}: {}", path(), line));
    return lines;
  }
  std::vector<std::string> rows() const override {
    std::vector<std::string> lines;
    std::vector<Piece> pieces;
    const std::unique_ptr<Plan> plan = make_plan();
    plan->begin(batch_.start.seed, batch_.start.epoch);
    for (int64_t i = 0; i < batch_.valid; ++i) {
      plan->row(batch_.start.position + i, pieces);
      std::string line;
      for (const Piece& piece : pieces) {
        const auto first = std::upper_bound(texts_->begins.begin(), texts_->begins.end(), piece.begin) - 1;
        const auto text = static_cast<size_t>(piece.text >= 0 ? piece.text : first - texts_->begins.begin());
        line += fmt::format("{}text {} from its token {} on, {} tokens", line.empty() ? "" : "; ",
                            texts_->indices[text], piece.begin - texts_->begins[text], piece.size);
      }
      lines.push_back(labelled_ ? line + ": " +
                                      texts_->classes[static_cast<size_t>(targets_[static_cast<size_t>(i)])]
                                : line);
    }
    return lines;
  }
  bool cached() const override { return true; }
  LoaderWork work() const override { return work_; }

 private:
  std::unique_ptr<Plan> make_plan() const {
    if (options_.rows == Rows::windows) return window_plan(*texts_, options_.plan);
    return options_.rows == Rows::packed ? packed_plan(*texts_, options_.plan)
                                         : bucket_plan(*texts_, options_.plan);
  }

  Cursor after(const Cursor& at) const {
    const int64_t next = at.position + options_.plan.batch;
    return next < plan_->rows() ? Cursor{at.seed, at.epoch, next} : Cursor{at.seed, at.epoch + 1, 0};
  }

  void fill() {
    const int64_t rows = options_.plan.batch, length = plan_->length(at_.position);
    const auto places = static_cast<size_t>(rows * length);
    batch_.start = at_;
    batch_.length = length;
    batch_.valid = std::min(rows, plan_->rows() - at_.position);
    for (auto* list : {&tokens_, &segments_, &positions_}) list->assign(places, 0);
    targets_.assign(labelled_ ? static_cast<size_t>(rows) : places, -1);
    for (int64_t i = 0; i < batch_.valid; ++i) {
      plan_->row(at_.position + i, pieces_);
      if (labelled_) targets_[static_cast<size_t>(i)] = texts_->labels[static_cast<size_t>(pieces_[0].text)];
      int64_t place = i * length, number = 0;
      for (const Piece& piece : pieces_) {
        put(piece, place, ++number);
        place += piece.size;
      }
      if (options_.spans) mask(i, place - i * length, length);
    }
    answer(places);
  }

  void put(const Piece& piece, int64_t place, int64_t number) {
    const auto at = static_cast<size_t>(place), size = static_cast<size_t>(piece.size);
    texts_->tokens.get(piece.begin, std::span(tokens_).subspan(at, size));
    if (options_.plan.next_token) texts_->tokens.get(piece.begin + 1, std::span(targets_).subspan(at, size));
    std::fill_n(segments_.begin() + place, size, number);
    for (size_t k = 0; k < size; ++k) positions_[at + k] = static_cast<int64_t>(k);
  }

  /// Masks spans of row i, whose first `size` places hold tokens.
  void mask(int64_t i, int64_t size, int64_t length) {
    const int64_t row = at_.position + i;
    const std::vector<uint8_t> masked = random_spans(size, *options_.spans, at_.seed, at_.epoch, row);
    RandomStream random(at_.seed, 0x6d61736b00000000 ^ static_cast<uint64_t>(at_.epoch),
                        static_cast<uint64_t>(row));
    uint32_t choice = 0;
    for (int64_t k = 0; k < size; ++k) {
      if (!masked[static_cast<size_t>(k)]) continue;
      if (k == 0 || !masked[static_cast<size_t>(k) - 1]) choice = random.below(10);
      const auto at = static_cast<size_t>(i * length + k);
      targets_[at] = tokens_[at];
      if (choice < 8)
        tokens_[at] = options_.mask;
      else if (choice == 8)
        tokens_[at] = random.below(static_cast<uint32_t>(options_.vocabulary));
    }
  }

  /// The arrays of the batch, in the order of the fields.
  void answer(size_t places) {
    batch_.targets = targets_;
    batch_.arrays = {bytes_of(tokens_)};
    if (inputs_ > 1) batch_.arrays.push_back(bytes_of(segments_));
    if (inputs_ > 2) batch_.arrays.push_back(bytes_of(positions_));
    answers_ = targets_;
    std::replace(answers_.begin(), answers_.end(), int64_t{-1}, int64_t{0});
    batch_.arrays.push_back(bytes_of(answers_));
    if (fields_.back().name != "counted") return;
    const auto count = std::count_if(targets_.begin(), targets_.end(), [](int64_t t) { return t >= 0; });
    const float each =
        count > 0 ? static_cast<float>(static_cast<double>(places) / static_cast<double>(count)) : 0;
    counted_.resize(places);
    for (size_t i = 0; i < places; ++i) counted_[i] = targets_[i] >= 0 ? each : 0;
    batch_.arrays.push_back(bytes_of(counted_));
  }

  std::shared_ptr<const Texts> texts_;
  TextFeedOptions options_;
  bool labelled_;
  std::unique_ptr<Plan> plan_;
  std::vector<Field> fields_;
  size_t inputs_ = 1;
  uint32_t digest_ = 0;
  Cursor at_;
  FeedBatch batch_;
  std::vector<Piece> pieces_;
  std::vector<int64_t> tokens_, segments_, positions_, targets_, answers_;
  std::vector<float> counted_;
  LoaderWork work_;
};

}  // namespace

std::vector<Field> text_inputs(Rows rows) {
  const Type type{i64, {Dim::named("batch"), Dim::named("length")}};
  std::vector<Field> fields = {{"tokens", type}};
  if (rows != Rows::windows) fields.push_back({"segments", type});
  if (rows == Rows::packed) fields.push_back({"positions", type});
  return fields;
}

std::unique_ptr<Feed> text_feed(std::shared_ptr<const Texts> texts, TextFeedOptions options) {
  return std::make_unique<TextFeed>(std::move(texts), std::move(options));
}

}  // namespace millrace::data
