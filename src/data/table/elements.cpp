#include "data/table/elements.h"

#include <map>

#include "base/format.h"
#include "base/number_from.h"
#include "data/table/column_values.h"
#include "data/table/read_columns.h"
#include "data/table/view.h"

namespace millrace::data {
namespace {

/// Where a column comes from: one of the whole's, or element `element` of it.
struct ElementPlace {
  size_t column = 0;
  int64_t element = -1;  // -1: it is that column
};

class SpreadArrays final : public View {
 public:
  SpreadArrays(std::shared_ptr<const Dataset> dataset, const std::vector<std::string>& known)
      : View(std::move(dataset)) {
    columns_.clear();
    for (size_t c = 0; c < whole().columns().size(); ++c) {
      const Column& column = whole().columns()[c];
      const auto elements = column.kind == ColumnKind::array ? whole().elements(c) : std::nullopt;
      if (!elements) {
        columns_.push_back(column);
        places_.push_back({c, -1});
        continue;
      }
      std::map<int64_t, int64_t> numbered;  // element by its number; -1: the data leave it out
      for (const std::string& name : known)
        if (const int64_t number = number_in(name, column.name); number >= 0) numbered[number] = -1;
      for (int64_t i = 0; i < elements->count; ++i) numbered[elements->first + i] = i;
      for (const auto& [number, element] : numbered) {
        columns_.push_back({fmt::format("{}[{}]", column.name, number), ColumnKind::real});
        places_.push_back({c, element < 0 ? left_out : element});
      }
    }
  }

  Value read(int64_t index, size_t column) const override {
    const ElementPlace& place = places_.at(column);
    if (place.element == left_out) return 0.0;
    const Value value = whole().read(index, place.column);
    if (place.element < 0) return value;
    const auto* const array = std::get_if<Array>(&value);
    return array && place.element < array->count() ? Value(array->at(place.element)) : Value();
  }

  /// An array is read once for all of its elements.
  bool read_run(int64_t first, int64_t count, std::span<const size_t> columns,
                std::vector<ColumnValues>& values) const override {
    std::vector<size_t> others;
    std::map<size_t, std::vector<size_t>> of_array;  // places in `values`
    for (size_t k = 0; k < columns.size(); ++k) {
      const ElementPlace& place = places_.at(columns[k]);
      if (place.element == -1)
        others.push_back(place.column);
      else
        of_array[place.column].push_back(k);
    }
    std::vector<ColumnValues> read;
    if (of_array.empty()) return whole().read_run(first, count, others, values);
    for (const size_t column : others)
      if (!is_tabular(whole().columns()[column].kind)) return false;
    if (!others.empty()) read = read_columns(whole(), first, count, others);
    values.resize(columns.size());
    for (size_t k = 0, other = 0; k < columns.size(); ++k)
      if (places_[columns[k]].element == -1)
        values[k] = std::move(read[other++]);
      else
        start_values(values[k], ColumnKind::real, static_cast<size_t>(count));
    for (const auto& [column, places] : of_array)
      for (int64_t i = 0; i < count; ++i) {
        const Value value = whole().read(first + i, column);
        const auto* const array = std::get_if<Array>(&value);
        for (const size_t k : places) {
          const int64_t element = places_[columns[k]].element;
          values[k].reals[static_cast<size_t>(i)] =
              array && element >= 0 && element < array->count() ? array->at(element) : 0;
        }
      }
    return true;
  }

  bool has(int64_t index, size_t column) const override {
    const ElementPlace& place = places_.at(column);
    return place.element == left_out || whole().has(index, place.column);
  }
  std::vector<std::string> class_names(size_t column) const override {
    const ElementPlace& place = places_.at(column);
    return place.element == -1 ? whole().class_names(place.column) : std::vector<std::string>();
  }
  std::optional<size_t> class_column() const override {
    const auto column = whole().class_column();
    for (size_t c = 0; c < places_.size() && column; ++c)
      if (places_[c].column == *column && places_[c].element == -1) return c;
    return std::nullopt;
  }
  bool decimal_comma(size_t column) const override {
    const ElementPlace& place = places_.at(column);
    return place.element == -1 && whole().decimal_comma(place.column);
  }
  std::optional<ArrayElements> elements(size_t /*column*/) const override { return std::nullopt; }
  std::span<const std::shared_ptr<const RandomAccessFile>> files() const override { return whole().files(); }
  std::optional<SampleExtent> extent(int64_t index) const override { return whole().extent(index); }
  std::optional<size_t> source_file(int64_t index) const override { return whole().source_file(index); }

 private:
  static constexpr int64_t left_out = -2;

  /// 7 of "features[7]"; -1 of all else.
  static int64_t number_in(const std::string& name, const std::string& column) {
    if (!name.starts_with(column + "[") || !name.ends_with("]")) return -1;
    const size_t begin = column.size() + 1;
    return number_from(name.substr(begin, name.size() - 1 - begin)).value_or(-1);
  }

  std::vector<ElementPlace> places_;
};

}  // namespace

std::shared_ptr<const Dataset> spread_arrays(std::shared_ptr<const Dataset> dataset,
                                             const std::vector<std::string>& known) {
  for (size_t c = 0; c < dataset->columns().size(); ++c)
    if (dataset->columns()[c].kind == ColumnKind::array && dataset->elements(c))
      return std::make_shared<SpreadArrays>(std::move(dataset), known);
  return dataset;
}

}  // namespace millrace::data
