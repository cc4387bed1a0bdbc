#include "data/labelled.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "base/format.h"

namespace millrace::data {
namespace {

constexpr int64_t max_classes = 1'000'000;

std::string columns_text(const Dataset& dataset) {
  std::string text;
  for (const Column& column : dataset.columns())
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", column.name, kind_name(column.kind));
  return text;
}

bool is_number(ColumnKind kind) {
  return kind == ColumnKind::integer || kind == ColumnKind::real || kind == ColumnKind::array;
}

size_t picture_column(const Dataset& dataset) {
  const auto& columns = dataset.columns();
  for (size_t i = 0; i < columns.size(); ++i)
    if (columns[i].kind == ColumnKind::picture) return i;
  fail<InputError>("{}: has no column of pictures; there are: {}", dataset.path(), columns_text(dataset));
}

size_t label_column(const Dataset& dataset) {
  const auto& columns = dataset.columns();
  for (const char* name : {"label", "cls", "class", "target"})
    for (size_t i = 0; i < columns.size(); ++i)
      if (columns[i].name == name && (is_number(columns[i].kind) || columns[i].kind == ColumnKind::text))
        return i;
  std::optional<size_t> only;
  int found = 0;
  for (size_t i = 0; i < columns.size(); ++i)
    if (columns[i].kind == ColumnKind::integer && ++found == 1) only = i;
  if (found == 1) return *only;
  fail<InputError>("{}: which column is the class? Name it label; there are: {}", dataset.path(),
                   columns_text(dataset));
}

class LabelledPictures final : public Source {
 public:
  explicit LabelledPictures(std::shared_ptr<const Dataset> dataset)
      : dataset_(std::move(dataset)), picture_(picture_column(*dataset_)) {
    path_ = dataset_->path();
    const size_t column = label_column(*dataset_);
    if (dataset_->columns()[column].kind == ColumnKind::text)
      read_texts(column);
    else
      read_numbers(column);
  }

  int64_t count() const override { return dataset_->count(); }
  int64_t label(int64_t index) const override { return labels_.at(static_cast<size_t>(index)); }
  std::string name(int64_t index) const override { return dataset_->name(index); }
  void will_read(int64_t index) const override { dataset_->will_read(index); }
  Sample read(int64_t index) const override {
    const Value value = dataset_->read(index, picture_);
    Sample sample;
    if (const auto* pixels = std::get_if<Pixels>(&value)) {
      sample.bytes = pixels->bytes.view();
      sample.owner = pixels->bytes;
      sample.height = pixels->height;
      sample.width = pixels->width;
      sample.channels = pixels->channels;
    } else if (const auto* bytes = std::get_if<Bytes>(&value)) {
      sample.bytes = bytes->view();
      sample.owner = *bytes;
    }
    return sample;
  }

 private:
  void read_numbers(size_t column) {
    int64_t top = 0;
    for (int64_t i = 0; i < dataset_->count(); ++i) {
      const Value value = dataset_->read(i, column);
      double number = -1;
      if (const auto* integer = std::get_if<int64_t>(&value)) number = static_cast<double>(*integer);
      if (const auto* real = std::get_if<double>(&value)) number = *real;
      if (const auto* array = std::get_if<Array>(&value); array && array->count() > 0) number = array->at(0);
      if (!(number >= 0 && number < static_cast<double>(max_classes)) || number != std::floor(number))
        fail<InputError>("{}: its {} is no class: {} (wanted is a whole number from 0 to {})",
                         dataset_->name(i), dataset_->columns()[column].name,
                         value_text(value, dataset_->columns()[column].kind), max_classes - 1);
      labels_.push_back(static_cast<int64_t>(number));
      top = std::max(top, labels_.back());
    }
    for (int64_t i = 0; i <= top; ++i) classes_.push_back(std::to_string(i));
  }

  void read_texts(size_t column) {
    std::map<std::string, int64_t> numbers;
    for (int64_t i = 0; i < dataset_->count(); ++i) {
      const Value value = dataset_->read(i, column);
      const auto* text = std::get_if<std::string>(&value);
      if (!text) fail<InputError>("{}: has no {}", dataset_->name(i), dataset_->columns()[column].name);
      labels_.push_back(numbers.try_emplace(*text, static_cast<int64_t>(numbers.size())).first->second);
      if (static_cast<int64_t>(numbers.size()) > max_classes)
        fail<InputError>("{}: more than {} classes in the column {}", path_, max_classes,
                         dataset_->columns()[column].name);
    }
    std::vector<int64_t> sorted(numbers.size());
    for (const auto& [text, number] : numbers) {
      sorted[static_cast<size_t>(number)] = static_cast<int64_t>(classes_.size());
      classes_.push_back(text);
    }
    for (int64_t& label : labels_) label = sorted[static_cast<size_t>(label)];
  }

  std::shared_ptr<const Dataset> dataset_;
  size_t picture_;
  std::vector<int64_t> labels_;
};

}  // namespace

std::unique_ptr<Source> labelled_pictures(std::shared_ptr<const Dataset> dataset) {
  return std::make_unique<LabelledPictures>(std::move(dataset));
}

}  // namespace millrace::data
