#include "data/table/labelled.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>

#include "base/format.h"
#include "data/formats/formats.h"

namespace millrace::data {
namespace fs = std::filesystem;
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

std::vector<size_t> picture_columns(const Dataset& dataset) {
  std::vector<size_t> pictures;
  for (size_t i = 0; i < dataset.columns().size(); ++i)
    if (dataset.columns()[i].kind == ColumnKind::picture) pictures.push_back(i);
  if (pictures.empty())
    fail<InputError>("{}: has no pictures: no column holds them; there are: {}", dataset.path(),
                     columns_text(dataset));
  return pictures;
}

std::optional<size_t> find_label(const Dataset& dataset) {
  const auto& columns = dataset.columns();
  for (const char* name : {"label", "cls", "class", "target"})
    for (size_t i = 0; i < columns.size(); ++i)
      if (columns[i].name == name && (is_number(columns[i].kind) || columns[i].kind == ColumnKind::text))
        return i;
  std::optional<size_t> only;
  int found = 0;
  for (size_t i = 0; i < columns.size(); ++i)
    if (columns[i].kind == ColumnKind::integer && ++found == 1) only = i;
  return found == 1 ? only : std::nullopt;
}

size_t label_column(const Dataset& dataset) {
  if (const auto found = find_label(dataset)) return *found;
  fail<InputError>(
      "{}: has pictures, but which column is the class? Name it label (in a tar: key.cls beside key.jpg, or "
      "a "
      "folder for each class); there are: {}",
      dataset.path(), columns_text(dataset));
}

/// The place of the column of keys.
std::optional<size_t> key_column(const Dataset& dataset) {
  for (size_t c = 0; c < dataset.columns().size(); ++c)
    if (dataset.columns()[c].name == "__key__" && dataset.columns()[c].kind == ColumnKind::text) return c;
  return std::nullopt;
}

/// A whole number from 0 on that a value of a class holds; -1 when there is none.
int64_t class_number(const Value& value) {
  double number = -1;
  if (const auto* integer = std::get_if<int64_t>(&value)) number = static_cast<double>(*integer);
  if (const auto* real = std::get_if<double>(&value)) number = *real;
  if (const auto* array = std::get_if<Array>(&value); array && array->count() > 0) number = array->at(0);
  const bool whole = number >= 0 && number < static_cast<double>(max_classes) && number == std::floor(number);
  return whole ? static_cast<int64_t>(number) : -1;
}

class Rows final : public Source {
 public:
  explicit Rows(std::shared_ptr<const Dataset> dataset)
      : dataset_(std::move(dataset)), key_(key_column(*dataset_)) {
    path_ = dataset_->path();
    notes_ = dataset_->notes();
    for (size_t c = 0; c < dataset_->columns().size(); ++c)
      if (c != key_) extra_.push_back(c);
  }
  int64_t count() const override { return dataset_->count(); }
  int64_t label(int64_t) const override { return -1; }
  std::string name(int64_t index) const override { return dataset_->name(index); }
  Sample read(int64_t) const override { return {}; }
  void will_read(int64_t index) const override { dataset_->will_read(index); }
  std::string key(int64_t index) const override {
    return key_ ? std::get<std::string>(dataset_->read(index, *key_)) : Source::key(index);
  }
  std::vector<Column> extra_columns() const override {
    std::vector<Column> columns;
    for (const size_t c : extra_) columns.push_back(dataset_->columns()[c]);
    return columns;
  }
  Value extra(int64_t index, size_t column) const override {
    return dataset_->read(index, extra_.at(column));
  }

 private:
  std::shared_ptr<const Dataset> dataset_;
  std::optional<size_t> key_;
  std::vector<size_t> extra_;
};

class LabelledPictures final : public Source {
 public:
  LabelledPictures(std::shared_ptr<const Dataset> dataset, bool labels)
      : dataset_(std::move(dataset)), pictures_(picture_columns(*dataset_)) {
    path_ = dataset_->path();
    notes_ = dataset_->notes();
    if (!labels) {
      for (int64_t i = 0; i < dataset_->count(); ++i)
        if (!picture_of(i)) missing(i, "picture");
      labels_.resize(static_cast<size_t>(dataset_->count()));
      classes_ = {""};
      find_extra(std::nullopt);
      return;
    }
    label_ = label_column(*dataset_);
    find_extra(label_);
    classes_ = dataset_->class_names(label_);
    for (int64_t i = 0; i < dataset_->count(); ++i) {
      if (!picture_of(i)) missing(i, "picture");
      if (!dataset_->has(i, label_)) missing(i, "label");
    }
    labels_.reserve(static_cast<size_t>(dataset_->count()));
    if (dataset_->columns()[label_].kind == ColumnKind::text)
      read_texts();
    else
      read_numbers();
  }

  int64_t count() const override { return dataset_->count(); }
  int64_t label(int64_t index) const override { return labels_.at(static_cast<size_t>(index)); }
  std::string name(int64_t index) const override { return dataset_->name(index); }
  void will_read(int64_t index) const override { dataset_->will_read(index); }
  std::vector<double> numbers(const std::string& column) const override {
    const size_t at = dataset_->column(column);
    std::vector<double> values;
    for (int64_t i = 0; i < dataset_->count(); ++i) {
      const Value value = dataset_->read(i, at);
      if (const auto* integer = std::get_if<int64_t>(&value))
        values.push_back(static_cast<double>(*integer));
      else if (const auto* real = std::get_if<double>(&value))
        values.push_back(*real);
      else
        fail<InputError>("{}: its {} is no number: {}", sample_text(i), column,
                         value_text(value, dataset_->columns()[at].kind));
    }
    return values;
  }
  std::string key(int64_t index) const override {
    return key_ ? std::get<std::string>(dataset_->read(index, *key_)) : Source::key(index);
  }
  std::vector<Column> extra_columns() const override {
    std::vector<Column> columns;
    for (const size_t c : extra_) columns.push_back(dataset_->columns()[c]);
    return columns;
  }
  Value extra(int64_t index, size_t column) const override {
    const size_t at = extra_.at(column);
    return picture_of(index) == at ? Value() : dataset_->read(index, at);
  }
  Sample read(int64_t index) const override {
    const Value value = dataset_->read(index, picture_of(index).value_or(pictures_[0]));
    return stored_picture(value);
  }

 private:
  /// The first column that holds this sample's picture: a WebDataset may have .jpg here and .ppm there.
  std::optional<size_t> picture_of(int64_t index) const {
    for (const size_t column : pictures_)
      if (dataset_->has(index, column)) return column;
    return std::nullopt;
  }

  /// All but the key, the class and the picture that every sample would take first.
  void find_extra(std::optional<size_t> label) {
    key_ = key_column(*dataset_);
    for (size_t c = 0; c < dataset_->columns().size(); ++c)
      if (c != key_ && c != label && c != pictures_[0]) extra_.push_back(c);
  }

  /// "train.tar: sample 0007" where samples have keys, else what the format calls it.
  std::string sample_text(int64_t index) const {
    const auto& columns = dataset_->columns();
    for (size_t c = 0; c < columns.size(); ++c)
      if (columns[c].name == "__key__")
        return fmt::format("{}: sample {}", path_, std::get<std::string>(dataset_->read(index, c)));
    return dataset_->name(index);
  }

  [[noreturn]] void missing(int64_t index, const char* what) const {
    std::vector<std::string> present;
    for (size_t c = 0; c < dataset_->columns().size(); ++c)
      if (dataset_->columns()[c].name != "__key__" && dataset_->has(index, c))
        present.push_back(dataset_->columns()[c].name);
    fail<InputError>(
        "{} has no {} (but {}); every sample needs a picture and a label, as key.jpg and key.cls",
        sample_text(index), what, fmt::join(present, ", "));
  }

  void read_numbers() {
    const std::string& column = dataset_->columns()[label_].name;
    int64_t top = 0, highest = 0;
    for (int64_t i = 0; i < dataset_->count(); ++i) {
      const Value value = dataset_->read(i, label_);
      if (std::holds_alternative<std::monostate>(value)) missing(i, "label");
      const int64_t number = class_number(value);
      if (number < 0)
        fail<InputError>("{}.{} holds no class number: {} (wanted is a whole number from 0 to {})",
                         sample_text(i), column, value_text(value, dataset_->columns()[label_].kind),
                         max_classes - 1);
      labels_.push_back(number);
      if (labels_.back() > top) top = labels_[static_cast<size_t>(highest = i)];
    }
    if (!classes_.empty() && top >= static_cast<int64_t>(classes_.size()))
      fail<InputError>(
          "{} is of class {}, but the index beside the data names only {} classes; pack the data again",
          sample_text(highest), top, classes_.size());
    if (classes_.empty())
      for (int64_t i = 0; i <= top; ++i) classes_.push_back(std::to_string(i));
  }

  void read_texts() {
    std::map<std::string, int64_t> numbers;
    const std::string* last = nullptr;  // neighbours are often of one class
    int64_t last_number = 0;
    for (int64_t i = 0; i < dataset_->count(); ++i) {
      const Value value = dataset_->read(i, label_);
      const auto* text = std::get_if<std::string>(&value);
      if (!text) missing(i, "label");
      if (!last || *last != *text) {
        const auto [at, added] = numbers.try_emplace(*text, static_cast<int64_t>(numbers.size()));
        last = &at->first;
        last_number = at->second;
      }
      labels_.push_back(last_number);
      if (static_cast<int64_t>(numbers.size()) > max_classes)
        fail<InputError>("{}: more than {} classes in the column {}; is every sample one of its own?", path_,
                         max_classes, dataset_->columns()[label_].name);
    }
    std::vector<int64_t> sorted(numbers.size());
    for (const auto& [text, number] : numbers) {
      sorted[static_cast<size_t>(number)] = static_cast<int64_t>(classes_.size());
      classes_.push_back(text);
    }
    for (int64_t& label : labels_) label = sorted[static_cast<size_t>(label)];
  }

  std::shared_ptr<const Dataset> dataset_;
  std::vector<size_t> pictures_, extra_;
  std::optional<size_t> key_;
  size_t label_ = 0;
  std::vector<int64_t> labels_;
};

}  // namespace

Sample stored_picture(const Value& value) {
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

std::unique_ptr<Source> labelled_pictures(std::shared_ptr<const Dataset> dataset) {
  return std::make_unique<LabelledPictures>(std::move(dataset), true);
}

LabelledSample labelled_sample(const Dataset& dataset, int64_t index) {
  LabelledSample sample;
  for (const size_t column : picture_columns(dataset))
    if (dataset.has(index, column)) {
      sample.picture = stored_picture(dataset.read(index, column));
      break;
    }
  const size_t label = label_column(dataset);
  sample.label = dataset.read(index, label);
  if (std::holds_alternative<std::monostate>(sample.label))
    fail<InputError>("{}: has no {}", dataset.name(index), dataset.columns()[label].name);
  if (std::holds_alternative<std::string>(sample.label)) return sample;
  const int64_t number = class_number(sample.label);
  if (number < 0)
    fail<InputError>("{}: its {} holds no class number: {}", dataset.name(index),
                     dataset.columns()[label].name, value_text(sample.label, dataset.columns()[label].kind));
  sample.label = number;
  return sample;
}

std::unique_ptr<Source> rows_of(std::shared_ptr<const Dataset> dataset) {
  return std::make_unique<Rows>(std::move(dataset));
}

bool has_pictures_and_labels(const Dataset& dataset) {
  for (const Column& column : dataset.columns())
    if (column.kind == ColumnKind::picture) return find_label(dataset).has_value();
  return false;
}

std::unique_ptr<Source> unlabelled_pictures(std::shared_ptr<const Dataset> dataset) {
  return std::make_unique<LabelledPictures>(std::move(dataset), false);
}

std::unique_ptr<Source> open_pictures(const std::string& path) {
  const std::string first = expand_paths(path)[0];
  if (!is_elsewhere(first)) {
    std::error_code ignored;
    const std::string item = data_file(first);
    const bool folder = fs::is_directory(item, ignored);
    if (!folder && (!fs::is_regular_file(item, ignored) || fs::file_size(item, ignored) == 0 ||
                    !format_of(*open_file(item))))
      return open_source(path);
  }
  std::shared_ptr<const Dataset> dataset = open_dataset(path);
  if (!has_pictures_and_labels(*dataset)) return unlabelled_pictures(std::move(dataset));
  // Of these the classes are found by rules of their own.
  if (dataset->format() == idx_format.name || dataset->format() == folder_format.name)
    return open_source(path);
  return labelled_pictures(std::move(dataset));
}

}  // namespace millrace::data
