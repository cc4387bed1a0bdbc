#include "data/feed/streams/stream_samples.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "data/formats/csv_cells.h"
#include "data/table/column_values.h"
#include "data/table/view.h"

namespace millrace::data {
namespace {

/// Whether a sample says of a column what in one of numbers is missing: a file of one row cannot tell.
bool says_nothing(const Dataset& sample, size_t column) {
  if (sample.columns()[column].kind != ColumnKind::text) return false;
  const Value value = sample.has(0, column) ? sample.read(0, column) : Value();
  const auto* const text = std::get_if<std::string>(&value);
  return !text || csv_missing_number(*text);
}

/// A sample by its name in the stream, with columns that others have.
class NamedSample final : public View {
 public:
  NamedSample(std::shared_ptr<const Dataset> sample, std::string name, const std::vector<Column>& columns)
      : View(std::move(sample)), name_(std::move(name)), own_(columns_.size()), missing_(own_, false) {
    for (const Column& column : columns) {
      const auto own = find_column(column.name);
      if (!own) {
        columns_.push_back(column);
      } else if (is_numeric(column.kind) && says_nothing(*this, *own)) {
        columns_[*own].kind = column.kind;
        missing_[*own] = true;
      }
    }
  }
  Value read(int64_t index, size_t column) const override {
    return column < own_ && !missing_[column] ? View::read(index, column) : Value();
  }
  bool has(int64_t index, size_t column) const override {
    return column < own_ && !missing_[column] && View::has(index, column);
  }
  std::vector<std::string> class_names(size_t column) const override {
    return column < own_ ? View::class_names(column) : std::vector<std::string>();
  }
  std::string name(int64_t /*index*/) const override { return name_; }

 private:
  std::string name_;
  size_t own_;  // columns
  std::vector<bool> missing_;
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
  const std::vector<Column>& own = opened.sample->columns();
  for (size_t c = 0; c < own.size(); ++c) {
    const auto known = find_column(own[c].name);
    const bool nothing = says_nothing(*opened.sample, c);
    if (!known) {
      columns_.push_back(own[c]);
      open_.push_back(nothing);
    } else if (!nothing) {
      ColumnKind& kind = columns_[*known].kind;
      kind = open_[*known] ? own[c].kind : kind_of_both(kind, own[c].kind);
      open_[*known] = false;
    }
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
