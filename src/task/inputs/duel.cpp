// Duels: two names, of which the first has won.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/format.h"
#include "base/suggest.h"
#include "base/utf8.h"
#include "data/feed/array_part.h"
#include "data/table/column_values.h"
#include "data/table/place.h"
#include "data/table/read_columns.h"
#include "task/input.h"
#include "task/recipe_sections.h"

namespace millrace::task {
namespace {

using data::ColumnKind;
using data::Dataset;

constexpr int64_t all_others = 0;               // in place of the second name
constexpr const char* duel_word = " against ";  // "Anna against Bert"
constexpr const char* usual_columns[] = {"winner", "loser"};

/// Rows of the two columns, as texts; what is missing is "".
std::vector<std::pair<std::string, std::string>> names_in(const Dataset& from,
                                                          const std::vector<std::string>& columns,
                                                          int64_t first, int64_t count) {
  const size_t places[] = {from.column(columns[0]), from.column(columns[1])};
  const auto values = data::read_columns(from, first, count, places);
  std::vector<std::pair<std::string, std::string>> rows(static_cast<size_t>(count));
  for (size_t i = 0; i < rows.size(); ++i)
    for (const size_t c : {0, 1}) {
      std::string& name = c == 0 ? rows[i].first : rows[i].second;
      if (!values[c].has(i)) continue;
      name = values[c].kind == ColumnKind::text ? std::string(values[c].contents[i])
                                                : data::category_text(values[c], i);
    }
  return rows;
}

/// What has been won and lost, as far as it bears on strengths.
struct DuelTally {
  std::map<std::string, std::pair<int64_t, int64_t>> of;  // duels won and lost, by name

  std::vector<std::string> notes() const {
    std::vector<std::string> one_sided;
    for (const auto& [name, duels] : of)
      if (duels.first == 0 || duels.second == 0) one_sided.push_back(name);
    if (one_sided.empty()) return {};
    const size_t count = one_sided.size();
    constexpr size_t shown = 5;
    one_sided.resize(std::min(count, shown));
    return {
        fmt::format("{} of {} names have won, or lost, all their duels ({}{}): the likeliest strength of "
                    "these is without "
                    "bounds, and grows as long as training lasts (weight_decay keeps it small)",
                    count, of.size(), fmt::join(one_sided, ", "), count > shown ? " …" : "")};
  }
};

class DuelInput final : public Input {
 public:
  DuelInput(Section section, std::vector<std::string> columns, std::vector<std::string> names,
            DuelTally tally)
      : Input(std::move(section)),
        columns_(std::move(columns)),
        names_(std::move(names)),
        tally_(std::move(tally)) {
    for (size_t i = 0; i < names_.size(); ++i) ids_[names_[i]] = static_cast<int64_t>(i) + 1;
    if (section_.settings.texts("columns").empty()) section_.set("columns", columns_);
  }

  std::string encoding() const override {
    nlohmann::json json{{"columns", nlohmann::json::array()}, {"names", nlohmann::json::array()}};
    for (const std::string& column : columns_) json["columns"].push_back(stored_text(column));
    for (const std::string& name : names_) json["names"].push_back(stored_text(name));
    return json.dump();
  }
  std::vector<std::string> notes() const override {
    std::vector<std::string> lines = {fmt::format("{} names", names_.size())};
    for (std::string& line : tally_.notes()) lines.push_back(std::move(line));
    return lines;
  }
  std::vector<data::Field> fields() const override {
    return {{"names", {i64, {Dim::named("batch"), int64_t{2}}}}};
  }
  std::vector<Tensor> graph(std::span<const Tensor> fields, bool /*training*/) const override {
    return {fields[0]};
  }
  void describe(nn::ModelOptions& options) const override { options.ids = {std::ssize(names_) + 2}; }
  std::vector<std::string> architectures() const override { return {"bradley_terry"}; }
  std::string gives() const override { return "duel"; }
  std::vector<std::string> columns() const override { return columns_; }

  std::shared_ptr<const data::Part> part(const Reading& reading, Purpose purpose) const override {
    for (const std::string& column : columns_) (void)reading.samples->column(column);
    const bool predicts = purpose == Purpose::prediction;
    return std::make_shared<data::ArrayPart>(
        fields(),
        [this, predicts](const Dataset& from, int64_t first, int64_t count,
                         std::span<std::byte* const> rows) {
          auto* to = reinterpret_cast<int64_t*>(rows[0]);
          const auto names = names_in(from, columns_, first, count);
          for (int64_t i = 0; i < count; ++i) {
            const auto& [winner, loser] = names[static_cast<size_t>(i)];
            to[2 * i] = id_of(from, first + i, winner, predicts);
            to[2 * i + 1] = predicts && loser.empty() ? all_others : id_of(from, first + i, loser, predicts);
          }
        },
        data::ArrayPartOptions{{}, reading.streamed || predicts});
  }

  /// "Anna against Bert", or "Anna" against all others at once.
  bool is_sample(const std::string& argument) const override {
    const size_t at = argument.find(duel_word);
    return at != std::string::npos || ids_.contains(argument);
  }
  std::shared_ptr<const Dataset> sample(const std::string& argument) const override {
    const size_t at = argument.find(duel_word);
    const bool one = at == std::string::npos;
    return data::memory_dataset(
        argument, {{columns_[0], ColumnKind::text}, {columns_[1], ColumnKind::text}},
        {{argument.substr(0, at),
          one ? data::Value() : argument.substr(at + std::string(duel_word).size())}});
  }
  /// "*": all names.
  std::vector<std::string> paths(const std::string& argument) const override {
    return argument == "*" ? names_ : std::vector{argument};
  }

  std::string text(std::span<const Array> row) const override {
    const auto name = [&](int64_t id) {
      return id == all_others          ? "all others"
             : id > std::ssize(names_) ? "somebody unknown"
                                       : names_[static_cast<size_t>(id - 1)];
    };
    return name(row[0].as<int64_t>()[0]) + duel_word + name(row[0].as<int64_t>()[1]);
  }

 private:
  /// Who is not known is as strong as all are in the mean; but nobody asks for that by a misspelt name.
  int64_t id_of(const Dataset& from, int64_t sample, const std::string& name, bool predicts) const {
    const auto at = ids_.find(name);
    if (at != ids_.end()) return at->second;
    if (name.empty()) fail<InputError>("{}: a name is missing", data::place_of(from, sample));
    if (predicts)
      fail<InputError>("{}: '{}' is in none of the duels of training{}", data::place_of(from, sample), name,
                       did_you_mean(name, names_));
    return std::ssize(names_) + 1;
  }

  std::vector<std::string> columns_, names_;
  DuelTally tally_;
  std::unordered_map<std::string, int64_t> ids_;
};

std::vector<std::string> duel_columns(const Section& section, const Dataset& samples) {
  std::vector<std::string> columns = section.settings.texts("columns");
  if (columns.empty()) columns.assign(std::begin(usual_columns), std::end(usual_columns));
  const std::string key = input_key(section);
  if (columns.size() != 2 || columns[0] == columns[1])
    fail<InputError>("{}.columns names two columns, of who has won and who has lost, not {}", key,
                     columns.size());
  for (const std::string& column : columns) {
    const auto place = samples.find_column(column);
    if (!place)
      fail<InputError>(
          "{}: which columns say who has won and who has lost? Set {}.columns = [WINNER, LOSER]; "
          "there is no '{}'",
          samples.path(), key, column);
    const ColumnKind kind = samples.columns()[*place].kind;
    if (kind != ColumnKind::text && kind != ColumnKind::integer)
      fail<InputError>("{}: the column '{}' holds {}s, not names", samples.path(), column,
                       data::kind_name(kind));
  }
  return columns;
}

std::unique_ptr<Input> learn_duel(const Section& section, const Reading& reading) {
  const Dataset& samples = *reading.samples;
  std::vector<std::string> columns = duel_columns(section, samples);
  DuelTally tally;
  constexpr int64_t run = 1 << 14;
  for (int64_t first = 0; first < samples.count(); first += run) {
    const auto rows = names_in(samples, columns, first, std::min(run, samples.count() - first));
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto& [winner, loser] = rows[i];
      if (winner.empty() || loser.empty() || winner == loser)
        fail<InputError>("{}: {}; leave such rows out by data.where",
                         data::place_of(samples, first + static_cast<int64_t>(i)),
                         winner == loser && !winner.empty() ? fmt::format("'{}' against itself", winner)
                                                            : "a name is missing");
      ++tally.of[winner].first;
      ++tally.of[loser].second;
    }
  }
  std::vector<std::string> names;
  for (const auto& [name, duels] : tally.of) names.push_back(name);
  return std::make_unique<DuelInput>(section, std::move(columns), std::move(names), std::move(tally));
}

std::unique_ptr<Input> load_duel(const Section& section, const std::string& encoding) {
  try {
    const auto json = nlohmann::json::parse(encoding);
    std::vector<std::string> columns, names;
    for (const auto& column : json.at("columns"))
      columns.push_back(text_of_stored(column.get<std::string>()));
    for (const auto& name : json.at("names")) names.push_back(text_of_stored(name.get<std::string>()));
    if (columns.size() == 2 && names.size() >= 2)
      return std::make_unique<DuelInput>(section, std::move(columns), std::move(names), DuelTally());
  } catch (const nlohmann::json::exception&) {
    // As any other damage.
  }
  fail<InputError>("what the checkpoint knows of {} is damaged", input_key(section));
}

}  // namespace

MILLRACE_INPUT(duel){
    .name = "duel",
    .doc = "two names, of which the first has won against the second",
    .unit = "duels",
    .settings = {{"columns", "the column of who has won, and of who has lost; empty: winner and loser",
                  std::vector<std::string>()}},
    // Such columns may as well be categories of a table: only who asks for duels means them.
    .recognise = [](const Dataset& /*samples*/,
                    const std::vector<std::string>& /*taken*/) -> std::vector<std::string> { return {}; },
    .rank = -1,
    .learn = learn_duel,
    .load = load_duel,
};

}  // namespace millrace::task
