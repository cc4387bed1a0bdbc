#include "data/encode/table_encoder.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/format.h"
#include "base/parallel_for.h"
#include "base/utf8.h"
#include "data/encode/table_state.h"
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

}  // namespace

/// The columns of one data set, found by their names.
class TableEncoder::Bound {
 public:
  Bound(const TableState& state, const Dataset& dataset, bool labels)
      : state_(state), dataset_(dataset), labels_(labels && !state.label.empty()) {
    for (const Dense& dense : state.dense) {
      // A flag goes with the column before it.
      if (dense.flag) continue;
      const size_t column = find(dense.column);
      if (!dense.ordinal.empty() && dataset.columns()[column].kind != ColumnKind::text)
        fail<InputError>("{}: the column '{}' holds numbers, and texts in training", dataset.path(),
                         dense.column);
      columns_.push_back(column);
    }
    for (const Category& category : state.categories) columns_.push_back(find(category.column));
    if (labels_) columns_.push_back(find(state.label));
  }

  void encode(int64_t first, int64_t count, float* dense, int64_t* ids, int64_t* labels) const {
    const auto values = read_columns(dataset_, first, count, columns_);
    size_t c = 0;
    const size_t width = state_.dense.size(), categories = state_.categories.size();
    for (size_t d = 0; d < width; ++d) {
      const bool flag = d + 1 < width && state_.dense[d + 1].flag;
      numbers(values[c++], first, d, flag, dense + d, width);
      d += flag;
    }
    for (size_t k = 0; k < categories; ++k) texts(values[c++], k, ids + k, categories);
    if (labels_) classes(values[c], first, labels);
  }

  void read_raw(int64_t first, int64_t count, double* numbers, int64_t* ids) const {
    const auto values = read_columns(dataset_, first, count, columns_);
    const size_t categories = state_.categories.size(), width = columns_.size() - categories;
    size_t c = 0;
    for (size_t d = 0; d < state_.dense.size(); ++d)
      if (!state_.dense[d].flag) {
        double* to = numbers + c;
        for (size_t i = 0; i < values[c].size(); ++i, to += width) *to = number(values[c], i, first, d);
        ++c;
      }
    for (size_t k = 0; k < categories; ++k) texts(values[c++], k, ids + k, categories);
  }

 private:
  size_t find(const std::string& name) const { return dataset_.column(name); }

  /// Value i of column d of the float matrix as it stands there; NaN where there is none.
  double number(const ColumnValues& values, size_t i, int64_t first, size_t d) const {
    if (!values.has(i)) return NAN;
    if (values.kind == ColumnKind::integer) return static_cast<double>(values.integers[i]);
    if (values.kind == ColumnKind::real) return values.reals[i];
    const Dense& column = state_.dense[d];
    if (column.ordinal.empty())
      return written_number(values.contents[i], first + static_cast<int64_t>(i), column.column);
    const TextIds& order = state_.ordinals[d];
    const auto at = order.find(values.contents[i]);
    return at != order.end() ? static_cast<double>(at->second) : NAN;
  }

  /// Column d of the float matrix, `to` its first element, and the flag behind it.
  void numbers(const ColumnValues& values, int64_t first, size_t d, bool flag, float* to,
               size_t width) const {
    const Dense& column = state_.dense[d];
    const bool standard = column.deviation > 0;
    const double scale = standard ? 1 / column.deviation : 1;
    const float filled = standard ? 0.0f : static_cast<float>(column.mean);
    for (size_t i = 0; i < values.size(); ++i, to += width) {
      const double value = number(values, i, first, d);
      const bool there = is_number(value);
      to[0] = !there ? filled : static_cast<float>(standard ? (value - column.mean) * scale : value);
      if (flag) to[1] = there ? 0.0f : 1.0f;
    }
  }

  /// Of few rows, as a file to predict may have, none or another than all may be a number: the column is one of texts then.
  double written_number(std::string_view text, int64_t sample, const std::string& column) const {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
      fail<InputError>("{}: its {} is '{}', and in training the column holds numbers", dataset_.name(sample),
                       column, text.substr(0, 40));
    return value;
  }

  void texts(const ColumnValues& values, size_t k, int64_t* to, size_t width) const {
    const TextIds& vocabulary = state_.ids[k];
    std::string made;
    for (size_t i = 0; i < values.size(); ++i, to += width) {
      const bool there = values.has(i);
      std::string_view text;
      if (there)
        text = values.kind == ColumnKind::text ? values.contents[i] : made = category_text(values, i);
      if (state_.hash_ids > 0) {
        *to = !there ? 0
                     : 1 + static_cast<int64_t>(XXH64(text.data(), text.size(), 0) %
                                                static_cast<uint64_t>(state_.hash_ids - 1));
        continue;
      }
      const auto at = vocabulary.find(text);
      *to = at == vocabulary.end() ? 0 : at->second;
    }
  }

  void classes(const ColumnValues& values, int64_t first, int64_t* to) const {
    std::string made;
    for (size_t i = 0; i < values.size(); ++i) {
      const auto sample = first + static_cast<int64_t>(i);
      if (!values.has(i)) fail<InputError>("{}: has no {}", dataset_.name(sample), state_.label);
      const std::string_view text = label_text(values, i, state_.trim, made);
      const auto at = state_.class_ids.find(text);
      if (at == state_.class_ids.end())
        fail<InputError>("{}: its {} '{}' is none of the classes of training ({}{})", dataset_.name(sample),
                         state_.label, text.substr(0, 40),
                         fmt::join(state_.classes.begin(),
                                   state_.classes.begin() +
                                       std::min<int64_t>(5, static_cast<int64_t>(state_.classes.size())),
                                   ", "),
                         state_.classes.size() > 5 ? " …" : "");
      to[i] = at->second;
    }
  }

  const TableState& state_;
  const Dataset& dataset_;
  bool labels_;
  std::vector<size_t> columns_;
};

const std::vector<TableEncoder::Dense>& TableEncoder::dense() const { return state_->dense; }
const std::vector<TableEncoder::Category>& TableEncoder::categories() const { return state_->categories; }
const std::vector<std::string>& TableEncoder::classes() const { return state_->classes; }

TableEncoder TableEncoder::unlabelled() const {
  auto state = std::make_shared<TableState>(*state_);
  state->label.clear();
  return TableEncoder(std::move(state));
}

bool TableEncoder::labelled() const { return !state_->label.empty(); }

std::vector<std::string> TableEncoder::columns() const {
  std::vector<std::string> names;
  for (const Dense& dense : state_->dense)
    if (!dense.flag) names.push_back(dense.column);
  for (const Category& category : state_->categories) names.push_back(category.column);
  return names;
}

std::vector<std::string> TableEncoder::text_columns() const {
  std::vector<std::string> names;
  for (const Dense& dense : state_->dense)
    if (!dense.ordinal.empty()) names.push_back(dense.column);
  for (const Category& category : state_->categories)
    if (!category.numbers) names.push_back(category.column);
  return names;
}

TableEncoder::Rows TableEncoder::encode(const Dataset& dataset, int64_t first, int64_t count) const {
  if (first < 0 || count < 0 || first > dataset.count() - count)
    fail<InternalError>("{}: there are no samples {} to {}", dataset.path(), first, first + count);
  const auto width = [](const auto& list) { return static_cast<int64_t>(list.size()); };
  Rows rows{Array(f32, {count, width(state_->dense)}), Array(i64, {count, width(state_->categories)}),
            Array(i64, {state_->label.empty() ? 0 : count})};
  Bound(*state_, dataset, true)
      .encode(first, count, rows.dense.as<float>().data(), rows.ids.as<int64_t>().data(),
              rows.labels.as<int64_t>().data());
  return rows;
}

TableEncoder::Rows TableEncoder::encode(const Dataset& dataset, int threads,
                                        const std::function<void(int64_t, int64_t)>& progress) const {
  constexpr int64_t part = 1 << 14;
  const int64_t count = dataset.count();
  const auto dense = static_cast<int64_t>(state_->dense.size()),
             ids = static_cast<int64_t>(state_->categories.size());
  Rows rows{Array(f32, {count, dense}), Array(i64, {count, ids}),
            Array(i64, {state_->label.empty() ? 0 : count})};
  const Bound bound(*state_, dataset, true);
  parallel_for((count + part - 1) / part, threads, [&](int64_t p) {
    const int64_t first = p * part, size = std::min(part, count - first);
    bound.encode(first, size, rows.dense.as<float>().data() + first * dense,
                 rows.ids.as<int64_t>().data() + first * ids,
                 state_->label.empty() ? nullptr : rows.labels.as<int64_t>().data() + first);
    if (progress) progress(first + size, count);
  });
  return rows;
}

TableEncoder::RawRows TableEncoder::encode_raw(const Dataset& dataset, int64_t first, int64_t count) const {
  if (first < 0 || count < 0 || first > dataset.count() - count)
    fail<InternalError>("{}: there are no samples {} to {}", dataset.path(), first, first + count);
  const auto numbers = std::count_if(state_->dense.begin(), state_->dense.end(),
                                     [](const Dense& dense) { return !dense.flag; });
  RawRows rows{Array(f64, {count, static_cast<int64_t>(numbers)}),
               Array(i64, {count, static_cast<int64_t>(state_->categories.size())})};
  read_raw(dataset, first, count, rows.numbers.as<double>().data(), rows.ids.as<int64_t>().data());
  return rows;
}

void TableEncoder::read_raw(const Dataset& dataset, int64_t first, int64_t count, double* numbers,
                            int64_t* ids) const {
  Bound(*state_, dataset, false).read_raw(first, count, numbers, ids);
}

std::string TableEncoder::json() const {
  nlohmann::ordered_json json{{"version", 1},
                              {"label", stored_text(state_->label)},
                              {"trim", stored_text(state_->trim)},
                              {"classes", stored_texts(state_->classes)},
                              {"hash_ids", state_->hash_ids},
                              {"dense", nlohmann::ordered_json::array()},
                              {"categories", nlohmann::ordered_json::array()}};
  for (const Dense& dense : state_->dense)
    json["dense"].push_back({{"column", stored_text(dense.column)},
                             {"flag", dense.flag},
                             {"mean", dense.mean},
                             {"deviation", dense.deviation},
                             {"ordinal", stored_texts(dense.ordinal)}});
  for (const Category& category : state_->categories) {
    json["categories"].push_back({{"column", stored_text(category.column)},
                                  {"ids", category.ids},
                                  {"vocabulary", stored_texts(category.vocabulary)}});
    if (category.numbers) json["categories"].back()["numbers"] = true;
  }
  return json.dump(1);
}

TableEncoder TableEncoder::parse(std::string_view text) {
  auto state = std::make_shared<TableState>();
  try {
    const auto json = nlohmann::json::parse(text);
    if (json.at("version").get<int>() != 1) fail<InputError>("it is of another version of Millrace");
    state->label = text_at(json, "label");
    state->trim = text_at(json, "trim");
    state->classes = texts_at(json, "classes");
    json.at("hash_ids").get_to(state->hash_ids);
    for (const auto& each : json.at("dense"))
      state->dense.push_back({text_at(each, "column"), each.at("flag").get<bool>(),
                              each.at("mean").get<double>(), each.at("deviation").get<double>(),
                              texts_at(each, "ordinal")});
    for (const auto& each : json.at("categories"))
      state->categories.push_back({text_at(each, "column"), each.at("ids").get<int64_t>(),
                                   texts_at(each, "vocabulary"), each.value("numbers", false)});
  } catch (const nlohmann::json::exception& error) {
    fail<InputError>("the encoding of columns is damaged: {}", error.what());
  }
  bool good = state->hash_ids >= 0 && state->hash_ids != 1 && (state->dense.empty() || !state->dense[0].flag);
  for (const Dense& dense : state->dense) good &= std::isfinite(dense.mean) && dense.deviation >= 0;
  for (const Category& category : state->categories)
    good &= category.ids ==
            (state->hash_ids > 0 ? state->hash_ids : static_cast<int64_t>(category.vocabulary.size()) + 1);
  if (!good) fail<InputError>("the encoding of columns is damaged: its numbers do not go together");
  state->index();
  return TableEncoder(std::move(state));
}

}  // namespace millrace::data
