#include "task/inputs/table_input.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <set>

#include <millrace/random.h>

#include "base/contains.h"
#include "base/format.h"
#include "data/encode/table_graph.h"
#include "data/encode/text_column.h"
#include "data/table/booleans.h"
#include "data/table/dates.h"
#include "data/table/place.h"
#include "data/table/read_columns.h"
#include "task/class_names.h"
#include "task/inputs/suiting.h"
#include "task/toml_text.h"

namespace millrace::task {
namespace {

/// May a column of a table be looked at at all?
bool is_table_column(const data::Column& column) {
  return data::is_tabular(column.kind) && column.name != "__key__";
}

/// The keys that say what columns are.
constexpr const char* decided_by_keys[] = {"categories", "numbers", "dates"};

/// What stands in a column of numbers, for people.
std::string dense_text(const data::TableDense& column, double value) {
  using Reads = data::TableDense::Reads;
  if (std::isnan(value)) return "missing";
  switch (column.reads) {
    case Reads::boolean:
      return value != 0 ? "yes" : "no";
    case Reads::date:
      return data::date_text(value);
    case Reads::number:
      break;
  }
  return fmt::format("{:.6g}", value);
}

std::string quoted(const std::string& text) {
  constexpr size_t most = 40;
  return fmt::format("\"{}\"{}", text.substr(0, most), text.size() > most ? " …" : "");
}

/// What the user should know of what became of a column: nothing of usual numbers and categories.
std::string decision_line(const data::TableColumn& column) {
  const std::string why = column.why.empty() ? "" : ": " + column.why;
  if (column.taken_as == "left out") return fmt::format("{} is left out{}", column.column, why);
  if (column.taken_as == "category")
    return column.rare == 0
               ? ""
               : fmt::format("{} has {} categories; {} with rarer values share one more", column.column,
                             column.values, column.rare == 1 ? "1 row" : fmt::format("{} rows", column.rare));
  if (column.taken_as == "number" && why.empty()) return "";
  return fmt::format("{} is taken as {}{}", column.column, column.taken_as, why);
}

}  // namespace

std::vector<std::string> TableInput::notes() const {
  std::vector<std::string> lines = {
      fmt::format("{} columns of numbers{}, {} of categories", numbers(), flags_text(), ids())};
  for (const data::TableColumn& each : encoder_.decisions())
    if (std::string line = decision_line(each); !line.empty()) lines.push_back(std::move(line));
  return lines;
}

std::vector<std::string> TableInput::unreadable(const data::Dataset& samples) const {
  std::vector<std::string> lines;
  for (const data::TableBadCells& each : encoder_.bad_cells(samples)) {
    if (each.bad == each.values && each.bad > 1)
      fail<InputError>("{}: {}: none of its {} values can be read as {} (the first: '{}' in {})",
                       samples.path(), each.column, each.values, each.kind, each.text,
                       data::place_of(samples, each.sample));
    lines.push_back(
        fmt::format("{}: {}: {} of {} values cannot be read as {} and {} as missing (the first: '{}' in {})",
                    samples.path(), each.column, each.bad, each.values, each.kind,
                    each.bad == 1 ? "counts" : "count", each.text, data::place_of(samples, each.sample)));
  }
  return lines;
}

std::vector<std::string> TableInput::unknown(const data::Dataset& samples) const {
  std::vector<std::string> lines;
  for (const data::TableUnknown& each : encoder_.unknown_categories(samples))
    lines.push_back(
        fmt::format("{}: {}: {} of {} values are none that training had ({} in {}; training had {})",
                    samples.path(), each.column, each.unknown, each.rows, quoted(each.text),
                    data::place_of(samples, each.sample), known_values(each.column)));
  return lines;
}

/// Some values of a column of categories, for people.
std::string TableInput::known_values(const std::string& column) const {
  constexpr size_t shown = 3;
  std::vector<std::string> values;
  for (const auto& category : encoder_.categories())
    if (category.column == column)
      for (size_t i = 0; i < std::min(category.vocabulary.size(), shown + 1); ++i)
        values.push_back(i < shown ? quoted(category.vocabulary[i]) : "…");
  return fmt::format("{}", fmt::join(values, ", "));
}

std::vector<data::Field> TableInput::row_fields() const {
  const Dim batch = Dim::named("batch");
  std::vector<data::Field> list;
  if (numbers() > 0) list.push_back({"numbers", {f64, {batch, numbers()}}});
  if (ids() > 0) list.push_back({"ids", {i64, {batch, ids()}}});
  return list;
}

std::vector<Tensor> TableInput::graph(std::span<const Tensor> fields, bool /*training*/) const {
  std::vector<Tensor> out(fields.begin(), fields.end());
  if (numbers() > 0) out[0] = data::encode_numbers(fields[0], encoder_.dense());
  return out;
}

void TableInput::describe(nn::ModelOptions& options) const {
  options.numbers = static_cast<int64_t>(encoder_.dense().size());
  options.ids.clear();
  for (const auto& category : encoder_.categories()) options.ids.push_back(category.ids);
}

std::vector<std::string> TableInput::architectures() const { return suiting_architectures("table", "table"); }

namespace {

bool loses_rows(const Reading& reading, Purpose purpose) {
  return reading.streamed || purpose == Purpose::prediction;
}

}  // namespace

data::ArrayReader TableInput::reader(const Reading& reading, Purpose purpose) const {
  for (const std::string& name : encoder_.columns()) (void)reading.samples->column(name);
  // Of what is learnt from or counted, unreadable() has told; who asks for one prediction wants it of what
  // stands there, and a stream names what it passes over.
  const auto bad =
      loses_rows(reading, purpose) ? data::TableEncoder::Bad::refused : data::TableEncoder::Bad::missing;
  return [encoder = encoder_, dense = numbers() > 0, categories = ids() > 0, bad](
             const data::Dataset& from, int64_t first, int64_t count, std::span<std::byte* const> rows) {
    encoder.read_raw(from, first, count, dense ? reinterpret_cast<double*>(rows[0]) : nullptr,
                     categories ? reinterpret_cast<int64_t*>(rows.back()) : nullptr, bad);
  };
}

data::ArrayPartOptions TableInput::part_options(const Reading& reading, Purpose purpose) const {
  return {{}, loses_rows(reading, purpose), purpose == Purpose::training ? hiding() : nullptr};
}

std::shared_ptr<const data::Part> TableInput::part(const Reading& reading, Purpose purpose) const {
  return std::make_shared<data::ArrayPart>(row_fields(), reader(reading, purpose),
                                           part_options(reading, purpose));
}

/// "age 39, work "State-gov" …"
std::string TableInput::text(std::span<const Array> row) const {
  constexpr size_t most = 12;
  std::vector<std::string> parts;
  size_t at = 0;
  for (const auto& column : encoder_.dense())
    if (!column.derived())
      parts.push_back(fmt::format("{} {}", column.column, dense_text(column, row[0].as<double>()[at++])));
  const size_t place = numbers() > 0 ? 1 : 0;
  for (size_t k = 0; k < encoder_.categories().size(); ++k) {
    const auto& category = encoder_.categories()[k];
    const int64_t id = row[place].as<int64_t>()[k];
    const bool known = id >= 1 && id <= static_cast<int64_t>(category.vocabulary.size());
    const std::string* const value = known ? &category.vocabulary[static_cast<size_t>(id - 1)] : nullptr;
    const bool hashed = category.vocabulary.empty() && id > 0;
    parts.push_back(fmt::format("{} {}", category.column,
                                hashed           ? fmt::format("hashed to {}", id)
                                : !value         ? "unknown"
                                : value->empty() ? "missing"
                                                 : quoted(*value)));
  }
  const bool cut = parts.size() > most;
  if (cut) parts.resize(most);
  return fmt::format("{}{}", fmt::join(parts, ", "), cut ? " …" : "");
}

std::vector<ExportedTexts> TableInput::exported_texts() const {
  std::vector<ExportedTexts> list;
  if (settings().integer("hash") > 0) return list;  // who serves the model hashes them
  for (const auto& category : encoder_.categories()) {
    ExportedTexts texts{"ids", std::ssize(list), category.column, {}};
    for (size_t i = 0; i < category.vocabulary.size(); ++i) {
      const int64_t id = static_cast<int64_t>(i) + 1;
      texts.ids.emplace_back(category.vocabulary[i], id);
      if (!category.vocabulary[i].empty()) continue;
      for (const std::string_view missing : data::missing_texts()) texts.ids.emplace_back(missing, id);
    }
    TextMap<int64_t> known(texts.ids.begin(), texts.ids.end()), ways = known;
    data::add_booleans(ways);
    for (const auto& [text, id] : ways)
      if (!known.contains(text)) texts.ids.emplace_back(text, id);
    list.push_back(std::move(texts));
  }
  return list;
}

/// Which columns say, too, where they have no value: they are more inputs of the model than there are
/// columns.
std::string TableInput::flags_text() const {
  constexpr size_t shown = 5;
  std::vector<std::string> names;
  for (const auto& column : encoder_.dense())
    if (column.flag) names.push_back(column.column);
  if (names.empty()) return "";
  const size_t count = names.size();
  names.resize(std::min(count, shown));
  return fmt::format(" with {} of what is missing ({}{})",
                     count == 1 ? "a flag" : fmt::format("{} flags", count), fmt::join(names, ", "),
                     count > shown ? " …" : "");
}

/// Makes some ids of a row those of values that training does not have.
std::function<void(const data::Row&, std::span<std::byte* const>)> TableInput::hiding() const {
  std::vector<double> shares;
  for (const auto& category : encoder_.categories()) shares.push_back(category.hidden);
  if (std::all_of(shares.begin(), shares.end(), [](double share) { return share == 0; })) return nullptr;
  return [shares](const data::Row& row, std::span<std::byte* const> arrays) {
    constexpr uint64_t hiding_stream = 0x686964;  // no augmentation's
    RandomStream random(row.key.seed, hiding_stream << 32 | static_cast<uint32_t>(row.key.epoch),
                        static_cast<uint64_t>(row.key.position));
    auto* const ids = reinterpret_cast<int64_t*>(arrays.back());
    for (size_t k = 0; k < shares.size(); ++k)
      if (random.uniform() < shares[k]) ids[k] = 0;
  };
}

int64_t TableInput::numbers() const { return data::raw_numbers(encoder_.dense()); }

namespace {

/// The columns that the recipe asks for, or all that no other input or output has taken.
data::TableOptions table_options(const Section& section, const Reading& reading) {
  const Settings& s = section.settings;
  const data::Dataset& samples = *reading.samples;
  const std::string key = input_key(section);
  const std::vector<std::string>&columns = s.texts("columns"), &leave_out = s.texts("leave_out");
  data::TableOptions options = data::usual_table(samples);
  options.categories = s.texts("categories");
  options.numbers = s.texts("numbers");
  options.dates = s.texts("dates");
  options.named = columns;
  options.bins = s.integer("bins");
  options.hash_ids = s.integer("hash");
  for (const std::string& name : leave_out) (void)samples.column(name);
  for (const std::string& name : columns)
    if (const data::Column& column = samples.columns()[samples.column(name)];
        !is_table_column(column) &&
        !(contains(options.categories, name) && column.kind != data::ColumnKind::array))
      fail<InputError>("{}.columns: '{}' of {} is of {}, a table takes numbers and texts", key, name,
                       samples.path(), data::kind_name(column.kind));
  for (const data::Column& column : samples.columns()) {
    const bool used = columns.empty()
                          ? !contains(reading.taken, column.name) && !contains(leave_out, column.name)
                          : contains(columns, column.name);
    if (!used) options.leave_out.push_back(column.name);
  }
  for (const char* kind : decided_by_keys)
    for (const std::string& name : s.texts(kind))
      if (!columns.empty() && !contains(columns, name))
        fail<InputError>("{0}.{3}: '{1}' is none of {0}.columns ({2})", key, name, fmt::join(columns, ", "),
                         kind);
  return options;
}

}  // namespace

data::TableEncoder learn_table(const Section& section, const Reading& reading) {
  data::TableOptions options = table_options(section, reading);
  std::mutex mutex;
  int64_t most = 0;
  if (reading.progress)
    options.progress = [&](int64_t done, int64_t total) {
      const std::lock_guard lock(mutex);
      most = std::max(most, done);
      reading.progress(reading.samples->path(), most, total);
    };
  return data::TableEncoder::learn(*reading.samples, options);
}

void check_table(const Section& section, const Recipe& /*recipe*/) {
  const Settings& s = section.settings;
  const std::string key = input_key(section);
  if (s.integer("hash") == 1)
    fail<InputError>("{}.hash = 1: id 0 is what is missing, so that no id is left for values: give 2 or more",
                     key);
  if (!s.texts("columns").empty() && !s.texts("leave_out").empty())
    fail<InputError>("{0}.columns and {0}.leave_out both say which columns are used: give one", key);
  for (const char* list : {"columns", "leave_out"}) require_different(s.texts(list), key + "." + list);
  std::map<std::string, std::string> said;
  for (const std::string& name : s.texts("leave_out")) said.emplace(name, "leave_out");
  for (const char* kind : decided_by_keys)
    for (const std::string& name : s.texts(kind))
      if (const auto [at, first] = said.emplace(name, kind); !first && at->second != kind)
        fail<InputError>("{0}.{1} and {0}.{2} both name '{3}'", key, kind, at->second, name);
}

/// What training will make of the columns, and which of whole numbers may be codes: those with few different
/// values among the first rows.
std::string draft_table(const data::Dataset& samples, const std::vector<std::string>& columns) {
  data::TableOptions options = data::usual_table(samples);
  for (const data::Column& column : samples.columns())
    if (!contains(columns, column.name)) options.leave_out.push_back(column.name);
  const data::TableEncoder encoder = data::TableEncoder::learn(samples, options);
  std::map<std::string, std::vector<std::string>> taken_as;
  std::vector<size_t> places;
  for (const data::TableColumn& column : encoder.decisions()) {
    if (!contains(columns, column.column)) continue;
    taken_as[column.taken_as].push_back(column.column);
    const size_t place = samples.column(column.column);
    if (column.taken_as == "number" && samples.columns()[place].kind == data::ColumnKind::integer)
      places.push_back(place);
  }
  std::vector<std::string> words = taken_as["left out"];
  std::erase_if(words, [&](const std::string& name) {
    const size_t place = samples.column(name);
    return samples.columns()[place].kind != data::ColumnKind::text ||
           !data::texts_seen(samples, place).are_words();
  });
  std::string draft;
  for (const char* kind : {"number", "yes or no", "date", "category", "there or not", "left out"}) {
    std::vector<std::string>& names = taken_as[kind];
    if (names.empty()) continue;
    const size_t count = names.size(), shown = std::min<size_t>(count, 12);
    names.resize(shown);
    draft += fmt::format("# {}{}: {}{}\n", std::string_view(kind) == "left out" ? "" : "taken as ", kind,
                         toml_text(names), count > shown ? fmt::format(" and {} more", count - shown) : "");
  }
  if (!words.empty())
    draft +=
        fmt::format("# words to read: {}, by an input of their own (docs/several.md)\n", toml_text(words));
  std::vector<std::string> codes;
  const int64_t rows = std::min<int64_t>(samples.count(), 2000);
  const auto values = data::read_columns(samples, 0, rows, places);
  for (size_t c = 0; c < places.size(); ++c) {
    std::set<int64_t> different;
    for (size_t i = 0; i < values[c].size(); ++i)
      if (values[c].has(i)) different.insert(values[c].integers[i]);
    if (different.size() > 2 && different.size() <= 20 && rows >= 5 * static_cast<int64_t>(different.size()))
      codes.push_back(samples.columns()[places[c]].name);
  }
  if (!codes.empty())
    draft +=
        fmt::format("# categories = {}  # those of these that are codes, not amounts\n", toml_text(codes));
  draft += "# leave_out = []  # columns that say nothing, such as numbers of rows\n";
  return draft;
}

std::vector<Setting> table_settings() {
  return {
      {"columns",
       "columns that are used; empty: all of numbers and texts that are not what is to be predicted, a "
       "weight, or in leave_out",
       std::vector<std::string>()},
      {"leave_out", "columns that are not used", std::vector<std::string>()},
      {"categories",
       "columns that are categories whatever they look like: numbers that are codes, texts that nearly all "
       "differ",
       std::vector<std::string>()},
      {"numbers", "columns that are numbers: what is none counts as missing", std::vector<std::string>()},
      {"dates",
       "columns that are dates: days, and where they stand in the year, the week and the day; whole "
       "numbers are their digits (20241231) where all are such, else microseconds since 1970",
       std::vector<std::string>()},
      {"bins",
       "numbers are also given by where they stand among so many ranges with equal numbers of rows, which "
       "helps where amounts are skewed or effects have steps; 0: not",
       int64_t{0}, 0, 1024},
      {"hash",
       "> 0: all texts are categories, and ids no vocabulary but 1 + murmur3_32(text) mod (hash - 1), 0 for "
       "what is missing: so many for each column, however many values there are",
       int64_t{0}, 0, int64_t{1} << 30}};
}

std::vector<std::string> table_columns(const data::Dataset& samples, const std::vector<std::string>& taken) {
  std::vector<std::string> names;
  for (const data::Column& column : samples.columns())
    if (is_table_column(column) && !contains(taken, column.name)) names.push_back(column.name);
  return names;
}

}  // namespace millrace::task
