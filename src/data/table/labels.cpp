#include "data/table/labels.h"

#include <cmath>
#include <map>

#include "base/contains.h"
#include "base/format.h"
#include "base/words.h"
#include "data/table/column_values.h"
#include "data/table/contents.h"
#include "data/table/view.h"

namespace millrace::data {
namespace {

constexpr int64_t max_classes = 1'000'000;
/// The first that is there counts.
constexpr const char* class_names[] = {"label", "cls", "class", "target"};

/// A whole number from 0 on that a value of a class holds; -1 when there is none.
int64_t class_number(const Value& value) {
  double number = number_value(value).value_or(-1);
  if (const auto* array = std::get_if<Array>(&value); array && array->count() > 0) number = array->at(0);
  const bool whole = number >= 0 && number < static_cast<double>(max_classes) && number == std::floor(number);
  return whole ? static_cast<int64_t>(number) : -1;
}

/// "train.tar: sample 0007" where samples have keys, else what the format calls it.
std::string sample_text(const Dataset& dataset, int64_t index) {
  const auto key = key_column(dataset);
  if (!key) return dataset.name(index);
  return fmt::format("{}: sample {}", dataset.path(), std::get<std::string>(dataset.read(index, *key)));
}

/// A sample without what it needs.
[[noreturn]] void fail_missing(const Dataset& dataset, int64_t index, const char* what, const char* needed) {
  std::vector<std::string> present;
  for (size_t c = 0; c < dataset.columns().size(); ++c)
    if (dataset.columns()[c].name != "__key__" && dataset.has(index, c))
      present.push_back(dataset.columns()[c].name);
  fail<InputError>("{} has no {} (but {}); {}", sample_text(dataset, index), what, fmt::join(present, ", "),
                   needed);
}

constexpr const char* needs_label = "every sample needs a label";

class Numbered final : public View {
 public:
  Numbered(std::shared_ptr<const Dataset> whole, size_t column) : View(std::move(whole)), column_(column) {
    names_ = this->whole().class_names(column_);
    numbers_.reserve(static_cast<size_t>(count()));
    if (columns_[column_].kind == ColumnKind::text)
      read_texts();
    else
      read_numbers();
    columns_[column_].kind = ColumnKind::integer;
  }

  Value read(int64_t index, size_t column) const override {
    return column == column_ ? Value(numbers_.at(static_cast<size_t>(index))) : whole().read(index, column);
  }
  bool read_run(int64_t first, int64_t count, std::span<const size_t> columns,
                std::vector<ColumnValues>& values) const override {
    if (!whole().read_run(first, count, columns, values)) return false;
    for (size_t k = 0; k < columns.size(); ++k) {
      if (columns[k] != column_) continue;
      start_values(values[k], ColumnKind::integer, 0);
      values[k].integers.assign(numbers_.begin() + first, numbers_.begin() + first + count);
    }
    return true;
  }
  bool has(int64_t index, size_t column) const override {
    return column == column_ || whole().has(index, column);
  }
  std::vector<std::string> class_names(size_t column) const override {
    return column == column_ ? names_ : whole().class_names(column);
  }
  std::optional<size_t> class_column() const override { return column_; }
  std::span<const std::shared_ptr<const RandomAccessFile>> files() const override { return whole().files(); }
  std::optional<SampleExtent> extent(int64_t index) const override { return whole().extent(index); }
  std::optional<size_t> source_file(int64_t index) const override { return whole().source_file(index); }

 private:
  void read_numbers() {
    const Column& column = whole().columns()[column_];
    int64_t top = 0, highest = 0;
    for (int64_t i = 0; i < count(); ++i) {
      const Value value = whole().read(i, column_);
      if (std::holds_alternative<std::monostate>(value)) fail_missing(whole(), i, "label", needs_label);
      const int64_t number = class_number(value);
      if (number < 0)
        fail<InputError>("{}.{} holds no class number: {} (wanted is a whole number from 0 to {})",
                         sample_text(whole(), i), column.name, value_text(value, column.kind),
                         max_classes - 1);
      numbers_.push_back(number);
      if (number > top) top = numbers_[static_cast<size_t>(highest = i)];
    }
    if (!names_.empty() && top >= static_cast<int64_t>(names_.size()))
      fail<InputError>(
          "{} is of class {}, but the index beside the data names only {} classes; pack the data again",
          sample_text(whole(), highest), top, names_.size());
    if (names_.empty())
      for (int64_t i = 0; i <= top; ++i) names_.push_back(std::to_string(i));
  }

  void read_texts() {
    std::map<std::string, int64_t> numbers;
    const std::string* last = nullptr;  // neighbours are often of one class
    int64_t last_number = 0;
    for (int64_t i = 0; i < count(); ++i) {
      const Value value = whole().read(i, column_);
      const auto* text = std::get_if<std::string>(&value);
      if (!text) fail_missing(whole(), i, "label", needs_label);
      if (!last || *last != *text) {
        const auto [at, added] = numbers.try_emplace(*text, static_cast<int64_t>(numbers.size()));
        last = &at->first;
        last_number = at->second;
      }
      numbers_.push_back(last_number);
      if (static_cast<int64_t>(numbers.size()) > max_classes)
        fail<InputError>("{}: more than {} classes in the column {}; is every sample one of its own?", path(),
                         max_classes, whole().columns()[column_].name);
    }
    std::vector<int64_t> sorted(numbers.size());
    for (const auto& [text, number] : numbers) {
      sorted[static_cast<size_t>(number)] = static_cast<int64_t>(names_.size());
      names_.push_back(text);
    }
    for (int64_t& number : numbers_) number = sorted[static_cast<size_t>(number)];
  }

  size_t column_;
  std::vector<std::string> names_;
  std::vector<int64_t> numbers_;
};

}  // namespace

bool names_class(std::string_view name) {
  if (name.ends_with(".txt")) name.remove_suffix(4);
  return contains(class_names, name);
}

std::optional<size_t> find_label(const Dataset& dataset) {
  const auto& columns = dataset.columns();
  for (const char* ending : {"", ".txt"})
    for (const char* name : class_names)
      if (const auto found = dataset.find_column(std::string(name) + ending);
          found && (is_tabular(columns[*found].kind) || columns[*found].kind == ColumnKind::array))
        return found;
  std::optional<size_t> only;
  int found = 0;
  for (size_t i = 0; i < columns.size(); ++i)
    if (columns[i].kind == ColumnKind::integer && ++found == 1) only = i;
  return found == 1 ? only : std::nullopt;
}

size_t label_column(const Dataset& dataset) {
  if (const auto found = find_label(dataset)) return *found;
  if (const std::string why = dataset.lacks(); !why.empty()) throw InputError(why);
  fail<InputError>(
      "{}: which column is the class? Name it label (in a tar: key.cls beside key.jpg, or a folder for each "
      "class); there are: {}",
      dataset.path(), columns_text(dataset));
}

bool names_rows(const std::string& name) {
  const std::string lower = lower_case(name);
  for (const char* whole :
       {"id", "index", "idx", "row", "rowid", "rownames", "no", "nr", "number", "#", "key"})
    if (lower == whole) return true;
  if (lower.starts_with("unnamed")) return true;
  for (const char* end : {"_id", "-id", " id", ".id", "_no", "_nr", "_index", " index"})
    if (lower.ends_with(end)) return true;
  return name.size() > 2 && (name.ends_with("Id") || name.ends_with("ID"));
}

std::shared_ptr<const Dataset> numbered(std::shared_ptr<const Dataset> dataset, size_t column) {
  return std::make_shared<Numbered>(std::move(dataset), column);
}

std::shared_ptr<const Dataset> labelled(std::shared_ptr<const Dataset> dataset, ColumnKind content) {
  if (const std::string why = dataset->lacks(); !why.empty() && !Contents::in(*dataset, content))
    throw InputError(why);
  const Contents contents(*dataset, content);
  const size_t label = label_column(*dataset);
  (void)dataset->class_names(label);  // says why folders are no classes
  const char* const needed = content == ColumnKind::picture
                                 ? "every sample needs a picture and a label, as key.jpg and key.cls"
                                 : "every sample needs both";
  for (int64_t i = 0; i < dataset->count(); ++i) {
    if (!contents.column(i)) fail_missing(*dataset, i, kind_name(content), needed);
    if (!dataset->has(i, label)) fail_missing(*dataset, i, "label", needed);
  }
  return numbered(std::move(dataset), label);
}

Labels::Labels(const Dataset& dataset) {
  const auto column = dataset.class_column();
  if (!column) return;
  dataset_ = &dataset;
  column_ = *column;
  names_ = dataset.class_names(column_);
}

Value class_of(const Dataset& dataset, int64_t index, size_t column) {
  const Column& label = dataset.columns().at(column);
  Value value = dataset.read(index, column);
  if (std::holds_alternative<std::monostate>(value))
    fail<InputError>("{}: has no {}", dataset.name(index), label.name);
  if (std::holds_alternative<std::string>(value)) return value;
  const int64_t number = class_number(value);
  if (number < 0)
    fail<InputError>("{}: its {} holds no class number: {}", dataset.name(index), label.name,
                     value_text(value, label.kind));
  return number;
}

std::vector<double> numbers_of(const Dataset& dataset, std::string_view column) {
  const size_t at = dataset.column(column);
  std::vector<double> values;
  for (int64_t i = 0; i < dataset.count(); ++i) {
    const Value value = dataset.read(i, at);
    const auto number = number_value(value);
    if (!number && std::holds_alternative<std::monostate>(value))
      fail<InputError>("{}: its {} is missing, or no number: each sample needs one", sample_text(dataset, i),
                       column);
    if (!number)
      fail<InputError>("{}: its {} is no number: {}", sample_text(dataset, i), column,
                       value_text(value, dataset.columns()[at].kind));
    values.push_back(*number);
  }
  return values;
}

std::optional<size_t> key_column(const Dataset& dataset) {
  const auto found = dataset.find_column("__key__");
  return found && dataset.columns()[*found].kind == ColumnKind::text ? found : std::nullopt;
}

std::string key_of(const Dataset& dataset, int64_t index) {
  if (const auto key = key_column(dataset)) return std::get<std::string>(dataset.read(index, *key));
  std::string text = dataset.name(index);
  if (text.starts_with(dataset.path())) text.erase(0, dataset.path().size());
  return text.starts_with('/') ? text.substr(1) : text;
}

}  // namespace millrace::data
