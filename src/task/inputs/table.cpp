// Rows of tables: numbers, standardised in the graph, and ids of categories.
#include <algorithm>
#include <cmath>
#include <mutex>
#include <set>

#include "base/format.h"
#include "data/encode/table_encoder.h"
#include "data/encode/table_graph.h"
#include "data/feed/array_part.h"
#include "data/table/read_columns.h"
#include "task/input.h"
#include "task/inputs/suiting.h"

namespace millrace::task {
namespace {

bool in_list(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// May a column of a table be looked at at all?
bool is_table_column(const data::Column& column) {
  using enum data::ColumnKind;
  return (column.kind == integer || column.kind == real || column.kind == text) && column.name != "__key__";
}

std::string quoted(const std::string& text) {
  constexpr size_t most = 40;
  return fmt::format("\"{}\"{}", text.substr(0, most), text.size() > most ? " …" : "");
}

class TableInput final : public Input {
 public:
  TableInput(Section section, data::TableEncoder encoder)
      : Input(std::move(section)), encoder_(std::move(encoder)) {}

  std::string encoding() const override { return encoder_.json(); }
  std::vector<std::string> notes() const override {
    return {fmt::format("{} columns of numbers, {} of categories", numbers(), ids())};
  }

  std::vector<data::Field> fields() const override {
    const Dim batch = Dim::named("batch");
    std::vector<data::Field> list;
    if (numbers() > 0) list.push_back({"numbers", {f64, {batch, numbers()}}});
    if (ids() > 0) list.push_back({"ids", {i64, {batch, ids()}}});
    return list;
  }
  std::vector<Tensor> graph(std::span<const Tensor> fields, bool /*training*/) const override {
    std::vector<Tensor> out(fields.begin(), fields.end());
    if (numbers() > 0) out[0] = data::encode_numbers(fields[0], encoder_.dense());
    return out;
  }
  void describe(nn::ModelOptions& options) const override {
    options.numbers = static_cast<int64_t>(encoder_.dense().size());
    options.ids.clear();
    for (const auto& category : encoder_.categories()) options.ids.push_back(category.ids);
  }
  std::vector<std::string> architectures() const override { return suiting_architectures("table", "table"); }
  std::string gives() const override { return "table"; }

  std::shared_ptr<const data::Part> part(const Reading& reading, Purpose purpose) const override {
    for (const std::string& name : encoder_.columns()) (void)reading.samples->column(name);
    const bool dense = numbers() > 0, categories = ids() > 0;
    return std::make_shared<data::ArrayPart>(
        fields(),
        [encoder = encoder_, dense, categories](const data::Dataset& from, int64_t first, int64_t count,
                                                std::span<std::byte* const> rows) {
          encoder.read_raw(from, first, count, dense ? reinterpret_cast<double*>(rows[0]) : nullptr,
                           categories ? reinterpret_cast<int64_t*>(rows.back()) : nullptr);
        },
        data::ArrayPartOptions{{}, reading.streamed || purpose == Purpose::prediction});
  }

  std::vector<std::string> columns() const override { return encoder_.columns(); }
  std::vector<std::string> text_columns() const override { return encoder_.text_columns(); }

  /// "age 39, work "State-gov" …"
  std::string text(std::span<const Array> row) const override {
    constexpr size_t most = 12;
    std::vector<std::string> parts;
    size_t at = 0;
    for (const auto& column : encoder_.dense()) {
      if (column.flag) continue;
      const double value = row[0].as<double>()[at++];
      if (std::isnan(value))
        parts.push_back(fmt::format("{} missing", column.column));
      else if (!column.ordinal.empty() && value >= 0 && value < static_cast<double>(column.ordinal.size()))
        parts.push_back(
            fmt::format("{} {}", column.column, quoted(column.ordinal[static_cast<size_t>(value)])));
      else
        parts.push_back(fmt::format("{} {:.6g}", column.column, value));
    }
    const size_t place = numbers() > 0 ? 1 : 0;
    for (size_t k = 0; k < encoder_.categories().size(); ++k) {
      const auto& category = encoder_.categories()[k];
      const int64_t id = row[place].as<int64_t>()[k];
      const bool known = id >= 1 && id <= static_cast<int64_t>(category.vocabulary.size());
      const std::string* const value = known ? &category.vocabulary[static_cast<size_t>(id - 1)] : nullptr;
      parts.push_back(fmt::format("{} {}", category.column,
                                  !value           ? "unknown"
                                  : value->empty() ? "missing"
                                                   : quoted(*value)));
    }
    const bool cut = parts.size() > most;
    if (cut) parts.resize(most);
    return fmt::format("{}{}", fmt::join(parts, ", "), cut ? " …" : "");
  }
  std::vector<ExportedTexts> exported_texts() const override {
    std::vector<ExportedTexts> list;
    for (const auto& category : encoder_.categories())
      list.push_back({"ids", static_cast<int64_t>(list.size()), category.column, category.vocabulary});
    return list;
  }

 private:
  int64_t numbers() const { return data::raw_numbers(encoder_.dense()); }
  int64_t ids() const { return static_cast<int64_t>(encoder_.categories().size()); }

  data::TableEncoder encoder_;
};

/// The columns that the recipe asks for, or all that no other input or output has taken.
data::TableOptions table_options(const Section& section, const Reading& reading) {
  const Settings& s = section.settings;
  const data::Dataset& samples = *reading.samples;
  const std::string key = input_key(section);
  const std::vector<std::string>&columns = s.texts("columns"), &leave_out = s.texts("leave_out");
  data::TableOptions options;
  options.categories = s.texts("categories");
  for (const std::string& name : leave_out) (void)samples.column(name);
  for (const std::string& name : columns)
    if (const data::Column& column = samples.columns()[samples.column(name)];
        !is_table_column(column) &&
        !(in_list(options.categories, name) && column.kind != data::ColumnKind::array))
      fail<InputError>("{}.columns: '{}' of {} is of {}, a table takes numbers and texts", key, name,
                       samples.path(), data::kind_name(column.kind));
  for (const data::Column& column : samples.columns()) {
    const bool used = columns.empty()
                          ? !in_list(reading.taken, column.name) && !in_list(leave_out, column.name)
                          : in_list(columns, column.name);
    if (!used) options.leave_out.push_back(column.name);
  }
  for (const std::string& name : options.categories)
    if (!columns.empty() && !in_list(columns, name))
      fail<InputError>("{0}.categories: '{1}' is none of {0}.columns ({2})", key, name,
                       fmt::join(columns, ", "));
  return options;
}

std::unique_ptr<Input> learn_table(const Section& section, const Reading& reading) {
  data::TableOptions options = table_options(section, reading);
  std::mutex mutex;
  int64_t most = 0;
  if (reading.progress)
    options.progress = [&](int64_t done, int64_t total) {
      const std::lock_guard lock(mutex);
      most = std::max(most, done);
      reading.progress(reading.samples->path(), most, total);
    };
  return std::make_unique<TableInput>(section, data::TableEncoder::learn(*reading.samples, options));
}

std::unique_ptr<Input> load_table(const Section& section, const std::string& encoding) {
  return std::make_unique<TableInput>(section, data::TableEncoder::parse(encoding));
}

void check_table(const Section& section, const Recipe& /*recipe*/) {
  const Settings& s = section.settings;
  const std::string key = input_key(section);
  if (!s.texts("columns").empty() && !s.texts("leave_out").empty())
    fail<InputError>("{0}.columns and {0}.leave_out both say which columns are used: give one", key);
  for (const std::string& name : s.texts("categories"))
    if (in_list(s.texts("leave_out"), name))
      fail<InputError>("{0}.categories and {0}.leave_out both name '{1}'", key, name);
}

/// Columns of whole numbers with few different values among the first rows: they may be codes.
std::string draft_table(const data::Dataset& samples, const std::vector<std::string>& columns) {
  const int64_t rows = std::min<int64_t>(samples.count(), 2000);
  std::vector<size_t> places;
  std::vector<std::string> numbers, texts, codes;
  for (const std::string& name : columns) {
    const size_t place = samples.column(name);
    const bool text = samples.columns()[place].kind == data::ColumnKind::text;
    (text ? texts : numbers).push_back(name);
    if (samples.columns()[place].kind == data::ColumnKind::integer) places.push_back(place);
  }
  const auto values = data::read_columns(samples, 0, rows, places);
  for (size_t c = 0; c < places.size(); ++c) {
    std::set<int64_t> different;
    for (size_t i = 0; i < values[c].size(); ++i)
      if (values[c].has(i)) different.insert(values[c].integers[i]);
    if (different.size() > 2 && different.size() <= 20 && rows >= 5 * static_cast<int64_t>(different.size()))
      codes.push_back(fmt::format("\"{}\"", samples.columns()[places[c]].name));
  }
  std::string draft =
      fmt::format("# {} columns of numbers, {} of categories (texts)\n", numbers.size(), texts.size());
  if (!codes.empty())
    draft += fmt::format("# categories = [{}]  # those of them that are codes, not amounts\n",
                         fmt::join(codes, ", "));
  draft += "# leave_out = []  # columns that say nothing, such as numbers of rows\n";
  return draft;
}

}  // namespace

MILLRACE_INPUT(table){
    .name = "table",
    .doc = "columns of a table: numbers, and texts that are categories",
    .unit = "rows",
    .settings =
        {{"columns",
          "columns that are used; empty: all of numbers and texts that are not what is to be predicted, a "
          "weight, or in leave_out",
          std::vector<std::string>()},
         {"leave_out", "columns that are not used", std::vector<std::string>()},
         {"categories", "columns of numbers that are categories (codes)", std::vector<std::string>()}},
    .recognise =
        [](const data::Dataset& samples, const std::vector<std::string>& taken) {
          std::vector<std::string> names;
          for (const data::Column& column : samples.columns())
            if (is_table_column(column) && !in_list(taken, column.name)) names.push_back(column.name);
          return names;
        },
    .rank = 10,
    .check = check_table,
    .learn = learn_table,
    .load = load_table,
    .draft = draft_table,
};

}  // namespace millrace::task
