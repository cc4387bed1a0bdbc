#include "data/encode/table_encoder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/murmur3.h"
#include "base/parallel_for.h"
#include "base/utf8.h"
#include "data/encode/table_state.h"
#include "data/formats/csv_cells.h"
#include "data/table/booleans.h"
#include "data/table/column_values.h"
#include "data/table/dates.h"
#include "data/table/place.h"
#include "data/table/read_columns.h"

namespace millrace::data {
namespace {

// Texts as they stand in JSON: tables in Latin-1 have texts that are no UTF-8.
std::vector<std::string> stored_texts(const std::vector<std::string>& texts) {
  std::vector<std::string> stored;
  for (const std::string& text : texts) stored.push_back(stored_text(text));
  return stored;
}

std::string text_at(const nlohmann::json& json, const char* key) {
  return text_of_stored(json.at(key).get<std::string>());
}

std::vector<std::string> texts_at(const nlohmann::json& json, const char* key) {
  auto texts = json.at(key).get<std::vector<std::string>>();
  for (std::string& text : texts) text = text_of_stored(text);
  return texts;
}

constexpr std::array whole_names = {"none", "microseconds", "digits"};
constexpr std::array reads_names = {"number", "boolean", "date"};

/// Which of the names stands at a key; the first one where there is none.
template <typename T>
T named_at(const nlohmann::json& dense, const char* key, const std::array<const char*, 3>& names,
           const char* what) {
  const std::string name = dense.value(key, names[0]);
  for (size_t k = 0; k < names.size(); ++k)
    if (name == names[k]) return static_cast<T>(k);
  fail<InputError>("the encoding of columns is damaged: it has {} of '{}'", what, name);
}

/// What a column of numbers holds, as it is written there.
std::string kind_of(const TableDense& column) {
  using Reads = TableDense::Reads;
  return column.reads == Reads::date ? "dates" : column.reads == Reads::boolean ? "yes and no" : "numbers";
}

constexpr size_t longest_shown = 40;  // characters of a value in a message

/// Days that a number of a column of dates stands for; nothing when it is none.
std::optional<double> whole_date(const TableDense& column, double number) {
  return column.whole == TableDense::Whole::digits ? date_of_digits(number) : number / microseconds_a_day;
}

/// A number, a date or yes or no that stands there as a text; nothing when it is none.
std::optional<double> read_dense(const TableDense& column, std::string_view text) {
  switch (column.reads) {
    case TableDense::Reads::date:
      if (column.whole != TableDense::Whole::none) {
        int64_t number = 0;
        return csv_integer(text, number) ? whole_date(column, static_cast<double>(number)) : std::nullopt;
      }
      return parse_date(text, column.day_first ? DateOrder::day_first : DateOrder::month_first);
    case TableDense::Reads::boolean:
      if (const int answer = yes_or_no(text); answer >= 0) return answer;
      break;
    default:
      break;
  }
  return csv_written_number(text, column.decimal_comma);
}

/// Value i of a column: NaN where there is none, nothing where it cannot be read.
std::optional<double> dense_at(const TableDense& column, const ColumnValues& values, size_t i) {
  if (!values.has(i)) return NAN;
  if (values.kind == ColumnKind::text) {
    const std::string_view text = values.contents[i];
    return csv_missing_number(text) ? NAN : read_dense(column, text);
  }
  const double value =
      values.kind == ColumnKind::integer ? static_cast<double>(values.integers[i]) : values.reals[i];
  return column.reads == TableDense::Reads::date ? whole_date(column, value) : value;
}

/// That value as a message shows it.
std::string shown(const ColumnValues& values, size_t i) {
  return values.kind == ColumnKind::text ? std::string(values.contents[i].substr(0, longest_shown))
                                         : category_text(values, i);
}

/// Is a text a code as "07" is, which is not 7?
bool begins_with_zeros(std::string_view text) {
  return text.size() > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9';
}

/// The ids of the values of a column, which stand `width` apart.
void read_ids(const ColumnValues& values, const TableState& state, size_t category, int64_t* to,
              size_t width) {
  const TextIds &vocabulary = state.ids[category], &by_number = state.number_ids[category];
  const bool text_column = values.kind == ColumnKind::text;
  const auto id_of_number = [&](std::string_view text) -> int64_t {
    if (text.empty() || text.find_first_of("0123456789+-.") != 0) return 0;
    const std::string number = text_column ? code_text(text) : std::string(text);
    auto like = by_number.find(number);
    if (like == by_number.end() && (like = vocabulary.find(number)) == vocabulary.end()) return 0;
    const std::string& known = state.categories[category].vocabulary[static_cast<size_t>(like->second) - 1];
    return text_column && (begins_with_zeros(text) || begins_with_zeros(known)) ? 0 : like->second;
  };
  std::string made;
  for (size_t i = 0; i < values.size(); ++i, to += width) {
    const bool there = values.has(i);
    std::string_view text;
    if (there && text_column)
      text = values.contents[i];
    else if (there)
      text = made = category_text(values, i);
    if (there && text_column && state.categories[category].numbers) text = made = code_text(text);
    if (is_missing_text(text)) text = {};
    if (state.hash_ids > 0) {
      if (const int truth = boolean_of(text); truth >= 0) text = truth > 0 ? "true" : "false";
      *to = text.empty() ? 0 : 1 + murmur3_32(text) % (state.hash_ids - 1);
      continue;
    }
    const auto at = vocabulary.find(text);
    *to = at == vocabulary.end() ? id_of_number(text) : at->second;
  }
}

}  // namespace

const std::vector<TableColumn>& TableEncoder::decisions() const { return state_->decisions; }
const std::vector<TableEncoder::Dense>& TableEncoder::dense() const { return state_->dense; }
const std::vector<TableEncoder::Category>& TableEncoder::categories() const { return state_->categories; }

std::vector<std::string> TableEncoder::columns() const {
  std::vector<std::string> names;
  for (const Dense& dense : state_->dense)
    if (!dense.derived()) names.push_back(dense.column);
  for (const Category& category : state_->categories) names.push_back(category.column);
  return names;
}

std::vector<std::string> TableEncoder::text_columns() const {
  std::vector<std::string> names;
  for (const Dense& dense : state_->dense)
    if (!dense.derived() && dense.whole == Dense::Whole::none &&
        (dense.reads != Dense::Reads::number || dense.decimal_comma))
      names.push_back(dense.column);
  for (const Category& category : state_->categories)
    if (!category.numbers) names.push_back(category.column);
  return names;
}

void TableEncoder::read_raw(const Dataset& dataset, int64_t first, int64_t count, double* numbers,
                            int64_t* ids, Bad bad) const {
  if (first < 0 || count < 0 || first > dataset.count() - count)
    fail<InternalError>("{}: there are no samples {} to {}", dataset.path(), first, first + count);
  std::vector<size_t> columns;
  for (const Dense& dense : state_->dense)
    if (!dense.derived()) columns.push_back(dataset.column(dense.column));
  const size_t width = columns.size(), categories = state_->categories.size();
  for (const Category& category : state_->categories) columns.push_back(dataset.column(category.column));
  const auto values = read_columns(dataset, first, count, columns);
  size_t c = 0;
  for (const Dense& dense : state_->dense) {
    if (dense.derived()) continue;
    double* to = numbers + c;
    for (size_t i = 0; i < values[c].size(); ++i, to += width) {
      const auto value = dense_at(dense, values[c], i);
      if (!value && bad == Bad::refused)
        fail<InputError>("{}: its {} is '{}', and in training the column holds {}",
                         place_of(dataset, first + static_cast<int64_t>(i)), dense.column,
                         shown(values[c], i), kind_of(dense));
      *to = value.value_or(NAN);
    }
    ++c;
  }
  for (size_t k = 0; k < categories; ++k) read_ids(values[c++], *state_, k, ids + k, categories);
}

std::vector<TableBadCells> TableEncoder::bad_cells(const Dataset& dataset) const {
  std::vector<size_t> columns;
  std::vector<const Dense*> read_as;
  for (const Dense& dense : state_->dense) {
    if (dense.derived()) continue;
    const size_t column = dataset.column(dense.column);
    if (dataset.columns()[column].kind != ColumnKind::text && dense.whole != Dense::Whole::digits) continue;
    columns.push_back(column);
    read_as.push_back(&dense);
  }
  if (columns.empty()) return {};
  constexpr int64_t part_rows = 1 << 14;
  const int64_t rows = dataset.count(), parts = (rows + part_rows - 1) / part_rows;
  std::vector<std::vector<TableBadCells>> of_part(static_cast<size_t>(parts));
  parallel_for(parts, 0, [&](int64_t p) {
    const int64_t first = p * part_rows;
    const auto values = read_columns(dataset, first, std::min(part_rows, rows - first), columns);
    auto& found = of_part[static_cast<size_t>(p)];
    found.resize(columns.size());
    for (size_t c = 0; c < columns.size(); ++c)
      for (size_t i = 0; i < values[c].size(); ++i) {
        const auto value = dense_at(*read_as[c], values[c], i);
        if (value && std::isnan(*value)) continue;
        ++found[c].values;
        if (value || found[c].bad++ > 0) continue;
        found[c].text = shown(values[c], i);
        found[c].sample = first + static_cast<int64_t>(i);
      }
  });
  std::vector<TableBadCells> bad;
  for (size_t c = 0; c < columns.size(); ++c) {
    TableBadCells all;
    all.column = read_as[c]->column;
    all.kind = kind_of(*read_as[c]);
    for (const auto& part : of_part) {
      if (all.bad == 0) all.text = part[c].text, all.sample = part[c].sample;
      all.bad += part[c].bad;
      all.values += part[c].values;
    }
    if (all.bad > 0) bad.push_back(std::move(all));
  }
  return bad;
}

std::string TableEncoder::json() const {
  nlohmann::ordered_json json{{"version", 1},
                              {"hash_ids", state_->hash_ids},
                              {"dense", nlohmann::ordered_json::array()},
                              {"categories", nlohmann::ordered_json::array()}};
  for (const Dense& dense : state_->dense) {
    json["dense"].push_back({{"column", stored_text(dense.column)},
                             {"flag", dense.flag},
                             {"mean", dense.mean},
                             {"deviation", dense.deviation}});
    auto& added = json["dense"].back();
    if (dense.reads != Dense::Reads::number) added["reads"] = reads_names[static_cast<size_t>(dense.reads)];
    if (dense.period > 0) added.update({{"period", dense.period}, {"cosine", dense.cosine}});
    if (dense.ranged()) added.update({{"low", dense.low}, {"high", dense.high}});
    if (dense.decimal_comma) added["decimal_comma"] = true;
    if (dense.day_first) added["day_first"] = true;
    if (dense.whole != Dense::Whole::none) added["whole"] = whole_names[static_cast<size_t>(dense.whole)];
  }
  for (const Category& category : state_->categories) {
    json["categories"].push_back({{"column", stored_text(category.column)},
                                  {"ids", category.ids},
                                  {"vocabulary", stored_texts(category.vocabulary)}});
    if (category.numbers) json["categories"].back()["numbers"] = true;
    if (category.hidden > 0) json["categories"].back()["hidden"] = category.hidden;
  }
  return json.dump(1);
}

TableEncoder TableEncoder::parse(std::string_view text) {
  auto state = std::make_shared<TableState>();
  try {
    const auto json = nlohmann::json::parse(text);
    if (json.at("version").get<int>() != 1) fail<InputError>("it is of another version of Millrace");
    json.at("hash_ids").get_to(state->hash_ids);
    for (const auto& each : json.at("dense"))
      state->dense.push_back({.column = text_at(each, "column"),
                              .flag = each.at("flag").get<bool>(),
                              .mean = each.at("mean").get<double>(),
                              .deviation = each.at("deviation").get<double>(),
                              .reads = named_at<Dense::Reads>(each, "reads", reads_names, "columns"),
                              .period = each.value("period", 0.0),
                              .cosine = each.value("cosine", false),
                              .low = each.value("low", 0.0),
                              .high = each.value("high", 0.0),
                              .decimal_comma = each.value("decimal_comma", false),
                              .day_first = each.value("day_first", false),
                              .whole = named_at<Dense::Whole>(each, "whole", whole_names, "dates")});
    for (const auto& each : json.at("categories"))
      state->categories.push_back({text_at(each, "column"), each.at("ids").get<int64_t>(),
                                   texts_at(each, "vocabulary"), each.value("numbers", false),
                                   each.value("hidden", 0.0)});
  } catch (const nlohmann::json::exception& error) {
    fail<InputError>("the encoding of columns is damaged: {}", error.what());
  }
  bool good =
      state->hash_ids >= 0 && state->hash_ids != 1 && (state->dense.empty() || !state->dense[0].derived());
  for (const Dense& dense : state->dense)
    good &= std::isfinite(dense.mean) && dense.deviation > 0 && dense.period >= 0 &&
            std::isfinite(dense.low) && std::isfinite(dense.high) && dense.low <= dense.high;
  for (const Category& category : state->categories)
    good &= category.hidden >= 0 && category.hidden < 1 &&
            category.ids == (state->hash_ids > 0 ? state->hash_ids
                                                 : static_cast<int64_t>(category.vocabulary.size()) + 1);
  if (!good) fail<InputError>("the encoding of columns is damaged: its numbers do not go together");
  state->index();
  return TableEncoder(std::move(state));
}

}  // namespace millrace::data
