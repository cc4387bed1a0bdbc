// The samples of a stream that a condition chooses.
#include <map>

#include "base/format.h"
#include "data/formats/streams/stream.h"
#include "data/table/index.h"
#include "data/table/labels.h"
#include "data/table/query_truth.h"
#include "data/table/select.h"

namespace millrace::data {
namespace {

/// Reads the values that a condition asks for, of one sample.
class SampleCells {
 public:
  SampleCells(const Dataset& sample, const Query& query) : sample_(sample), query_(query) {}

  Cell operator()(size_t node, size_t at) {
    const Query::Operand& operand = query_.nodes()[node].operands[at];
    if (operand.what != Query::Operand::What::column) return constant_cell(operand);
    const auto [place, added] = values_.try_emplace(operand.text);
    if (added) place->second = find(operand.text);
    const Value& value = place->second;
    if (const auto* integer = std::get_if<int64_t>(&value)) return *integer;
    if (const auto* real = std::get_if<double>(&value)) return *real;
    if (const auto* text = std::get_if<std::string>(&value)) return std::string_view(*text);
    return {};
  }

 private:
  Value find(const std::string& name) const {
    std::vector<std::string> names = {name};
    if (name == "label") names.insert(names.end(), {"cls", "class", "target"});
    for (const std::string& each : names)
      if (const auto at = sample_.find_column(each); at && is_tabular(sample_.columns()[*at].kind))
        return read_or_missing(sample_, 0, *at);
    if (name == "width" || name == "height") {
      const auto size = size_of_picture(sample_, 0);
      return size ? Value(name == "width" ? size->width : size->height) : Value();
    }
    if (name == "split") {
      const auto at = key_column(sample_);
      const Value value = at ? read_or_missing(sample_, 0, *at) : Value();
      const auto* const key = std::get_if<std::string>(&value);
      const std::string split = split_of(key ? *key : "", "");
      if (!split.empty()) return split;
    }
    return {};
  }

  const Dataset& sample_;
  const Query& query_;
  std::map<std::string, Value> values_;
};

class Selected final : public Stream {
 public:
  Selected(std::unique_ptr<Stream> whole, const std::string& condition)
      : Stream(whole->path()), whole_(std::move(whole)), query_(Query::parse(condition)) {}

  bool next(StreamRecord& record) override {
    while (whole_->next(record)) {
      ++seen_;
      const std::optional<bool> match = matches(record);
      if (!match) return true;
      if (*match) {
        matched_ = ever_matched_ = true;
        looked_at_.clear();
        looked_bytes_ = 0;
        return true;
      }
      if (ever_matched_) continue;
      if (looked_at_.size() < 64) {
        looked_at_.push_back(record);
        looked_bytes_ += record.bytes.size();
      }
      if (seen_ == 1000) check_names();
    }
    if (!matched_) {
      if (!ever_matched_) check_names();
      fail<InputError>("{}: no sample matches the condition {}, of {} up to its end", path(), query_.text(),
                       seen_);
    }
    return false;
  }

  void seek(const StreamPlace& place) override {
    seen_ = 0;
    matched_ = place.number > 0;  // this one did
    ever_matched_ = ever_matched_ || matched_;
    whole_->seek(place);
  }
  void stop() override { whole_->stop(); }
  void set_room(SampleRoom room) override {
    whole_->set_room([this, room = std::move(room)](uint64_t bytes) { room(bytes + looked_bytes_); });
  }
  std::unique_ptr<Dataset> samples(std::span<const StreamRecord> records) const override {
    return whole_->samples(records);
  }
  const std::string& format() const override { return whole_->format(); }

 private:
  /// Nothing where the sample cannot be read.
  std::optional<bool> matches(const StreamRecord& record) const {
    if (!record.fault.empty()) return std::nullopt;
    try {
      const auto sample = whole_->samples({&record, 1});
      if (sample->count() != 1) return std::nullopt;
      SampleCells cells(*sample, query_);
      return evaluate(query_, query_.nodes().size() - 1,
                      [&](size_t node, size_t at) { return cells(node, at); }) == Truth::yes;
    } catch (const Error&) {
      return std::nullopt;
    }
  }

  /// Says what is wrong with the condition when it cannot match any sample so far, as for indexed data.
  void check_names() const {
    if (!looked_at_.empty()) (void)matching(*whole_->samples(looked_at_), query_);
  }

  std::unique_ptr<Stream> whole_;
  Query query_;
  int64_t seen_ = 0;  // of this pass
  bool matched_ = false, ever_matched_ = false;
  std::vector<StreamRecord> looked_at_;
  uint64_t looked_bytes_ = 0;  // of those
};

}  // namespace

std::unique_ptr<Stream> select(std::unique_ptr<Stream> stream, const std::string& condition) {
  return std::make_unique<Selected>(std::move(stream), condition);
}

}  // namespace millrace::data
