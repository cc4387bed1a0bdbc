#include "data/feed/streams/stream_samples.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "data/table/column_values.h"
#include "data/table/view.h"

namespace millrace::data {
namespace {

/// A sample by its name in the stream, with columns that others have.
class NamedSample final : public View {
 public:
  NamedSample(std::shared_ptr<const Dataset> sample, std::string name, const std::vector<Column>& columns)
      : View(std::move(sample)), name_(std::move(name)), own_(columns_.size()) {
    for (const Column& column : columns)
      if (!find_column(column.name)) columns_.push_back(column);
  }
  Value read(int64_t index, size_t column) const override {
    return column < own_ ? View::read(index, column) : Value();
  }
  bool has(int64_t index, size_t column) const override { return column < own_ && View::has(index, column); }
  std::vector<std::string> class_names(size_t column) const override {
    return column < own_ ? View::class_names(column) : std::vector<std::string>();
  }
  std::string name(int64_t /*index*/) const override { return name_; }

 private:
  std::string name_;
  size_t own_;  // columns
};

float weight_in(const Dataset& dataset, const std::string& column) {
  const size_t at = dataset.column(column);
  const Value value = dataset.read(0, at);
  const double weight = number_value(value).value_or(-1);
  if (!(weight >= 0) || !std::isfinite(weight))
    fail<InputError>("its {} is {}: a weight is a number from 0 on", column,
                     value_text(value, dataset.columns()[at].kind));
  return static_cast<float>(weight);
}

}  // namespace

OpenedRecord RecordOpener::open(const StreamRecord& record, const std::vector<Column>& columns) const {
  OpenedRecord opened;
  opened.name = fmt::format("{}{} (sample {})", source_, stream_->path(), record.at.number);
  opened.why = record.fault;
  if (!opened.why.empty()) return opened;
  try {
    std::shared_ptr<const Dataset> sample = stream_->samples({&record, 1});
    if (sample->count() != 1) {
      opened.why = fmt::format("its bytes hold {} samples", sample->count());
      return opened;
    }
    if (!sample->columns().empty() && sample->columns()[0].name == "__key__")
      opened.name =
          fmt::format("{}{}:{}", source_, stream_->path(), std::get<std::string>(sample->read(0, 0)));
    if (!weight_.empty()) opened.weight = weight_in(*sample, weight_);
    opened.sample = std::make_shared<const NamedSample>(std::move(sample), opened.name, columns);
  } catch (const Error& error) {
    opened.why = error.what();
  }
  return opened;
}

std::string StreamHead::add(const RecordOpener& opener, const StreamRecord& record) {
  OpenedRecord opened = opener.open(record, {});
  if (!opened.why.empty()) return std::move(opened.why);
  for (const Column& column : opened.sample->columns()) {
    const auto known = find_column(column.name);
    if (known)
      columns_[*known].kind = kind_of_both(columns_[*known].kind, column.kind);
    else
      columns_.push_back(column);
  }
  last_ = -1;  // it has too few columns now
  entries_.push_back({opener, record, std::move(opened.name)});
  return {};
}

std::shared_ptr<const Dataset> StreamHead::opened(int64_t index) const {
  const std::lock_guard lock(mutex_);
  furthest_ = std::max(furthest_.load(), index);
  if (last_ == index) return last_sample_;
  const Entry& entry = entries_.at(static_cast<size_t>(index));
  last_sample_ = entry.opener.open(entry.record, columns_).sample;
  if (!last_sample_) fail<InternalError>("{}: cannot be opened a second time", entry.name);
  last_ = index;
  return last_sample_;
}

Value StreamHead::read(int64_t index, size_t column) const {
  const auto sample = opened(index);
  return as_kind(sample->read(0, sample->column(columns_.at(column).name)), columns_[column].kind);
}

bool StreamHead::has(int64_t index, size_t column) const {
  const auto sample = opened(index);
  return sample->has(0, sample->column(columns_.at(column).name));
}

}  // namespace millrace::data
