// JSON lines: a line is an object, its members are columns. https://jsonlines.org
#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/contains.h"
#include "base/file.h"
#include "base/format.h"
#include "base/parallel_for.h"
#include "data/formats/csv_cells.h"
#include "data/formats/formats.h"
#include "data/formats/lines.h"

namespace millrace::data {
namespace {

using Json = nlohmann::json;

constexpr size_t most_json_columns = 100'000, deepest_json = 200;

enum class JsonKind : uint8_t { none, boolean, integer, real, text, nested };

/// Of the values of a column: how many are what. Numbers widen to reals; among them words for what is missing
/// ("n/a"), and a few other texts, as in CSV, are no values, and booleans are 0 and 1. Among other texts
/// numbers and booleans are what a text has of them, as in CSV. With objects or lists all are JSON.
struct JsonTally {
  int64_t booleans = 0, integers = 0, reals = 0, nested = 0;
  int64_t texts = 0, words = 0;  // words: those of the texts that stand for a missing number
  int64_t first = -1;            // sample of the first other text, and that
  std::string first_text;

  void add(JsonKind kind, const std::string& text, int64_t sample) {
    constexpr size_t shown = 40;
    booleans += kind == JsonKind::boolean;
    integers += kind == JsonKind::integer;
    reals += kind == JsonKind::real;
    nested += kind == JsonKind::nested;
    if (kind != JsonKind::text) return;
    ++texts;
    if (csv_missing_number(text))
      ++words;
    else if (first < 0) {
      first = sample;
      first_text = text.substr(0, shown);
    }
  }
  void add(const JsonTally& later) {
    booleans += later.booleans;
    integers += later.integers;
    reals += later.reals;
    nested += later.nested;
    texts += later.texts;
    words += later.words;
    if (first >= 0) return;
    first = later.first;
    first_text = later.first_text;
  }
  int64_t numbers() const { return integers + reals == 0 ? 0 : booleans + integers + reals; }
  int64_t bad() const { return texts - words; }
  ColumnKind kind() const {
    if (nested > 0) return ColumnKind::json;
    if (numbers() == 0 || bad() > csv_bad_allowed(numbers() + bad())) return ColumnKind::text;
    return reals > 0 ? ColumnKind::real : ColumnKind::integer;
  }
};

std::string text_of(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

/// Goes through an object and tells of its members: `member(name, kind, text)`. `wrong` says why it stopped.
template <typename Member>
class MemberKinds final : public nlohmann::json_sax<Json> {
 public:
  explicit MemberKinds(Member member) : member_(std::move(member)) {}
  std::string wrong;

  bool null() override { return value(JsonKind::none); }
  bool boolean(bool) override { return value(JsonKind::boolean); }
  bool number_integer(int64_t) override { return value(JsonKind::integer); }
  bool number_unsigned(uint64_t number) override {
    return value(number <= static_cast<uint64_t>(INT64_MAX) ? JsonKind::integer : JsonKind::real);
  }
  bool number_float(double, const std::string&) override { return value(JsonKind::real); }
  bool string(std::string& text) override { return value(JsonKind::text, text); }
  bool binary(Json::binary_t&) override { return value(JsonKind::nested); }
  bool start_object(size_t) override { return depth_ == 0 ? begin() : value(JsonKind::nested) && begin(); }
  bool start_array(size_t) override { return value(JsonKind::nested) && begin(); }
  bool end_object() override { return end(); }
  bool end_array() override { return end(); }
  bool key(std::string& name) override {
    if (depth_ == 1) name_ = name;
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& error) override {
    wrong = error.what();
    wrong = wrong.substr(std::min(wrong.find("] ") + 2, wrong.size()));
    // Each line is a text of its own, so "line 1" would be misunderstood.
    constexpr std::string_view place = "parse error at line 1, column ";
    if (wrong.starts_with(place)) wrong = "at its character " + wrong.substr(place.size());
    wrong = "is no JSON: " + wrong;
    return false;
  }

 private:
  bool begin() {
    if (++depth_ > deepest_json)
      wrong = fmt::format("has values within values, more than {} deep", deepest_json);
    return depth_ <= deepest_json;
  }
  bool end() {
    --depth_;
    return true;
  }
  bool value(JsonKind kind, const std::string& text = {}) {
    if (depth_ == 0) wrong = "must be a JSON object, this is another value";
    if (depth_ == 1) member_(name_, kind, text);
    return depth_ > 0;
  }

  Member member_;
  std::string name_;
  size_t depth_ = 0;
};

class JsonLines final : public LineDataset {
 public:
  JsonLines(const std::string& path, Files files, const OpenOptions& options)
      : LineDataset(path, std::move(files), line_with_text) {
    constexpr int64_t part = 1024;
    using Found = std::vector<std::pair<std::string, JsonTally>>;
    std::vector<Found> list(static_cast<size_t>((count() + part - 1) / part));
    parallel_for(static_cast<int64_t>(list.size()), 0, [&](int64_t p) {
      Found& found = list[static_cast<size_t>(p)];
      std::map<std::string, size_t> places;
      for (int64_t i = p * part; i < std::min(count(), (p + 1) * part); ++i)
        examine(i, [&](const std::string& key, JsonKind kind, const std::string& text) {
          const auto [at, added] = places.try_emplace(key, found.size());
          if (added) found.emplace_back(key, JsonTally());
          found[at->second].second.add(kind, text, i);
          if (found.size() > most_json_columns)
            fail<InputError>("{}: has more than {} different names; are they data?", path, most_json_columns);
        });
    });
    std::map<std::string, size_t> places;
    std::vector<JsonTally> tallies;
    for (const Found& found : list)
      for (const auto& [key, tally] : found) {
        const auto [at, added] = places.try_emplace(key, tallies.size());
        if (added) {
          columns_.push_back({key, ColumnKind::text});
          tallies.emplace_back();
        }
        tallies[at->second].add(tally);
        if (tallies.size() > most_json_columns)
          fail<InputError>("{}: has more than {} different names; are they data?", path, most_json_columns);
      }
    if (columns_.empty()) fail<InputError>("{}: its objects have no members", path);
    refuse_columns(tallies);
    for (size_t c = 0; c < tallies.size(); ++c) {
      columns_[c].kind = tallies[c].kind();
      if (is_numeric(columns_[c].kind) && contains(options.texts, columns_[c].name))
        columns_[c].kind = ColumnKind::text;
      note_texts(c, tallies[c]);
    }
  }

  Value read(int64_t index, size_t column) const override {
    try {
      return value_of(*parsed(index), column);
    } catch (const Json::exception&) {
      fail<InputError>("{}: '{}' is of another kind than before: the file has changed since it was opened",
                       name(index), columns_[column].name);
    }
  }

 private:
  /// One object whose members are all columns, or lists, is what pandas writes unless it is told otherwise.
  void refuse_columns(const std::vector<JsonTally>& tallies) const {
    const bool nested =
        std::all_of(tallies.begin(), tallies.end(), [](const JsonTally& tally) { return tally.nested == 1; });
    if (count() == 1 && nested)
      fail<InputError>(
          "{}: is one JSON object with all rows in it, column by column; JSON lines have an object for each "
          "row: "
          "in pandas to_json(…, orient=\"records\", lines=True)",
          path());
  }

  /// Texts among numbers: what the user should know of them.
  void note_texts(size_t c, const JsonTally& tally) {
    const bool numbers = is_numeric(columns_[c].kind);
    texts_in_.push_back(numbers && tally.texts > 0);
    // Texts of which some are numbers are nothing to wonder about.
    const bool texts = !numbers && 2 * tally.bad() >= tally.numbers();
    if (tally.numbers() == 0 || tally.bad() == 0 || tally.nested > 0 || texts) return;
    note(fmt::format("{}: {}: {} of {} values {} (the first: '{}' in {}) {}", path(), columns_[c].name,
                     tally.bad(), tally.numbers() + tally.bad(),
                     tally.bad() == 1 ? "is no number" : "are no numbers", tally.first_text,
                     name(tally.first), numbers ? "and counts as missing" : "and its values are texts"));
  }

  template <typename Member>
  void examine(int64_t index, Member&& member) const {
    MemberKinds kinds(member);
    const Bytes line = lines_.read(index);
    if (!Json::sax_parse(line.text(), &kinds)) fail<InputError>("{}: {}", name(index), kinds.wrong);
  }

  Json parse(int64_t index) const {
    const Bytes line = lines_.read(index);
    Json object = Json::parse(line.text(), nullptr, false);
    if (!object.is_object())
      fail<InputError>("{}: is no JSON object any more: the file has changed since it was opened",
                       name(index));
    return object;
  }

  /// Values of a sample are asked for one after the other: the last line is kept.
  std::shared_ptr<const Json> parsed(int64_t index) const {
    {
      const std::lock_guard lock(mutex_);
      if (kept_ && kept_index_ == index) return kept_;
    }
    auto object = std::make_shared<const Json>(parse(index));
    const std::lock_guard lock(mutex_);
    kept_ = object;
    kept_index_ = index;
    return object;
  }

  Value value_of(const Json& object, size_t column) const {
    const auto at = object.find(columns_.at(column).name);
    if (at == object.end() || at->is_null() || (texts_in_[column] && at->is_string())) return {};
    switch (columns_[column].kind) {
      case ColumnKind::integer:
        return at->is_boolean() ? int64_t{at->get<bool>()} : at->get<int64_t>();
      case ColumnKind::real:
        return at->is_boolean() ? static_cast<double>(at->get<bool>()) : at->get<double>();
      case ColumnKind::text:
        return at->is_string() ? at->get<std::string>() : text_of(*at);
      default:
        return text_of(*at);
    }
  }

  std::vector<char> texts_in_;  // of each column: is it one of numbers that has texts
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const Json> kept_;
  mutable int64_t kept_index_ = -1;
};

class JsonLinesWriter final : public DatasetWriter {
 public:
  JsonLinesWriter(const std::string& path, const std::vector<Column>& columns)
      : path_(path), columns_(columns), file_(path) {
    for (const Column& column : columns)
      if (column.kind == ColumnKind::bytes || column.kind == ColumnKind::picture ||
          column.kind == ColumnKind::audio)
        fail<InputError>(
            "{}: JSON lines hold numbers and texts; they have no place for the column '{}' ({}); choose "
            "others with --columns, or another format (parquet)",
            path, column.name, kind_name(column.kind));
  }

  void add(std::span<const Value> values) override {
    std::string line = "{";
    for (size_t c = 0; c < values.size(); ++c) {
      if (c > 0) line += ", ";
      line += text_of(Json(columns_[c].name)) + ": " + text(values[c], columns_[c]);
    }
    file_.write(line + "}\n");
    ++count_;
  }

  void finish() override { file_.commit(); }

 private:
  std::string text(const Value& value, const Column& column) const {
    if (const auto* content = std::get_if<std::string>(&value)) {
      if (column.kind != ColumnKind::json) return text_of(Json(*content));
      const Json parsed = Json::parse(*content, nullptr, false);
      if (parsed.is_discarded())
        fail<InputError>("{}: sample {}: the column '{}' holds no JSON", path_, count_, column.name);
      return text_of(parsed);
    }
    if (std::holds_alternative<std::monostate>(value)) return "null";
    if (const auto* integer = std::get_if<int64_t>(&value)) return std::to_string(*integer);
    if (const auto* real = std::get_if<double>(&value)) return number(*real);
    const auto& array = std::get<Array>(value);
    std::string list = "[";
    for (int64_t i = 0; i < array.count(); ++i)
      list += (i ? ", " : "") +
              (array.dtype().is_float() ? number(array.at(i)) : std::to_string(array.int_at(i)));
    return list + "]";
  }

  /// JSON has no word for what is no finite number. A whole one is marked as a real.
  static std::string number(double real) { return text_of(Json(real)); }

  std::string path_;
  std::vector<Column> columns_;
  AtomicFile file_;
  int64_t count_ = 0;
};

}  // namespace

static std::unique_ptr<Dataset> open_jsonl(const std::string& path, Files files, const OpenOptions& options) {
  return std::make_unique<JsonLines>(path, std::move(files), options);
}

MILLRACE_FORMAT(jsonl){
    .name = "jsonl",
    .doc = "JSON lines (.jsonl, .ndjson)",
    .place = 90,
    .matches = [](std::string_view path,
                  std::span<const uint8_t>) { return path.ends_with(".jsonl") || path.ends_with(".ndjson"); },
    .open = open_jsonl,
    .create = create_as<JsonLinesWriter>,
    .pipes = true};

}  // namespace millrace::data
