// Scores that put the rows of a query in order.
#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "base/format.h"
#include "data/feed/group_part.h"
#include "data/table/booleans.h"
#include "data/table/group.h"
#include "data/table/place.h"
#include "data/table/read_columns.h"
#include "eval/metric.h"
#include "task/json_text.h"
#include "task/output.h"
#include "task/recipe_sections.h"

namespace millrace::task {
namespace {

using data::ColumnKind;
using data::Dataset;

/// Relevances of rows of the table.
void read_relevance(const Dataset& from, const std::string& column, int64_t first, int64_t count, float* to) {
  const size_t place = from.column(column);
  const auto values = data::read_columns(from, first, count, {&place, 1});
  for (int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(i);
    if (!values[0].has(at))
      fail<InputError>(
          "{}: has no {}; every row of a query needs one to learn from, 0 where it is not relevant",
          data::place_of(from, first + i), column);
    const double value = values[0].kind == ColumnKind::integer ? static_cast<double>(values[0].integers[at])
                         : values[0].kind == ColumnKind::real  ? values[0].reals[at]
                         : values[0].kind == ColumnKind::text  ? data::boolean_of(values[0].contents[at])
                                                               : NAN;
    // Gains 2^relevance are numbers.
    constexpr double most = 100;
    if (!(value >= 0) || value > most)
      fail<InputError>(
          "{}: its {} is {}; relevances are numbers from 0 (not relevant) to {}, of which each is twice as "
          "good as the one below it",
          data::place_of(from, first + i), column,
          data::value_text(from.read(first + i, place), values[0].kind), most);
    to[i] = static_cast<float>(value);
  }
}

/// What there is to learn from.
struct RankedStatistics {
  int64_t queries = 0, flat = 0;  // flat: queries whose rows are all equally relevant
  double ignorance = NAN;
};

class RankOutput final : public Output {
 public:
  RankOutput(Section section, std::string column, RankedStatistics known)
      : Output(std::move(section)), column_(std::move(column)), known_(known) {
    loss_ = chosen_loss(section_);
    if (section_.settings.text("column").empty()) section_.set("column", column_);
  }
  void set_ignorance(double loss) { known_.ignorance = loss; }

  std::string encoding() const override {
    nlohmann::json json{{"column", stored_text(column_)}};
    if (std::isfinite(known_.ignorance)) json["ignorance"] = known_.ignorance;
    return json.dump();
  }
  std::vector<std::string> notes() const override {
    if (known_.flat == 0) return {};
    return {fmt::format("{} of {} queries have rows that are all equally relevant, which {}", known_.flat,
                        known_.queries,
                        known_.flat == known_.queries ? "leaves nothing to learn; is it the right column?"
                                                      : "teach no order")};
  }
  double ignorance() const override { return known_.ignorance; }
  int64_t width() const override { return 1; }
  bool at_places() const override { return true; }

  std::shared_ptr<const data::Part> part(const Reading& reading) const override {
    (void)reading.samples->column(column_);
    const std::vector<int64_t> sizes = data::group_sizes(*reading.samples);
    return std::make_shared<data::GroupPart>(
        std::vector<data::Field>{{"target", {f32, {Dim::named("batch")}}}},
        *std::max_element(sizes.begin(), sizes.end()),
        [column = column_](const Dataset& from, int64_t first, int64_t count,
                           std::span<std::byte* const> rows) {
          read_relevance(from, column, first, count, reinterpret_cast<float*>(rows[0]));
        },
        data::ArrayPartOptions{{data::pad_of<float>(-1)}});
  }

  Tensor predictions(const Tensor& logits) const override { return squeeze(cast(logits, f32), 2); }
  std::string predictions_name() const override { return "scores"; }

  void judge(std::span<const float> logits, std::span<const std::byte> targets, int64_t length,
             const std::vector<char>& rows, double bytes, eval::Measurement& into) const override {
    const auto* const all = reinterpret_cast<const float*>(targets.data());
    std::vector<float> scores;
    std::vector<double> relevance;
    std::vector<int64_t> queries;
    for (size_t query = 0; query < rows.size(); ++query)
      for (int64_t i = 0; i < length && rows[query]; ++i) {
        const size_t at = query * static_cast<size_t>(length) + static_cast<size_t>(i);
        if (all[at] < 0) continue;
        scores.push_back(logits[at]);
        relevance.push_back(static_cast<double>(all[at]));
        queries.push_back(static_cast<int64_t>(query));
      }
    into.update({.outputs = scores,
                 .rows = std::ssize(scores),
                 .width = 1,
                 .values = relevance,
                 .bytes = bytes,
                 .queries = queries});
  }

  /// Rows as they stand in the query, from 1 on, the best first.
  Prediction predict(std::span<const float> logits, int64_t top) const override {
    std::vector<size_t> order(logits.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return logits[a] > logits[b]; });
    Prediction told;
    std::string list;
    for (size_t i = 0; i < order.size(); ++i) {
      list += fmt::format("{}{}", i > 0 ? ", " : "", order[i]);
      if (static_cast<int64_t>(i) < top)
        told.text += fmt::format("{}row {} ({:.4g})", i > 0 ? ", " : "", order[i] + 1, logits[order[i]]);
    }
    if (static_cast<int64_t>(order.size()) > top) told.text += fmt::format(" … of {}", order.size());
    told.json = {{"order", "[" + list + "]"}, {"scores", json_numbers(logits)}};
    return told;
  }
  std::string target_text(std::span<const std::byte> target) const override {
    const auto* const values = reinterpret_cast<const float*>(target.data());
    std::vector<std::string> texts;
    for (size_t i = 0; i < target.size() / sizeof(float) && values[i] >= 0; ++i)
      texts.push_back(fmt::format("{:.6g}", values[i]));
    return fmt::format("{} of its rows: {}", column_, fmt::join(texts, " "));
  }
  std::string predicted_text(std::span<const float> logits,
                             std::span<const std::byte> target) const override {
    constexpr int64_t told = 5;
    const auto* const values = reinterpret_cast<const float*>(target.data());
    const auto there = std::find_if(values, values + logits.size(), [](float value) { return value < 0; });
    return predict(logits.first(static_cast<size_t>(there - values)), told).text;
  }

 private:
  std::string column_;
  RankedStatistics known_;
};

/// Do rows say which belong together? Else a column of numbers is what other kinds of output predict.
bool has_queries(const Dataset& samples) {
  return (samples.count() > 0 && samples.rows(0).table) || !data::query_column(samples).empty();
}

std::string rank_refuses(const Dataset& samples, const std::string& column) {
  if (!has_queries(samples)) return "no column is called qid, query_id or query, and data.group is not set";
  const ColumnKind kind = samples.columns()[samples.column(column)].kind;
  if (data::is_numeric(kind) || data::holds_booleans(samples, samples.column(column))) return {};
  return fmt::format("'{}' holds {}s, not relevances", column, data::kind_name(kind));
}

std::string relevance_column(const Dataset& samples) {
  for (const char* name : {"relevance", "label", "grade", "target", "rel", "y"})
    if (samples.find_column(name) && rank_refuses(samples, name).empty()) return name;
  return {};
}

/// Loss of scores that are all equal, over the first queries.
double loss_of_equals(const RankOutput& output, const Dataset& samples, const std::string& column) {
  constexpr int64_t most = 256;
  const int64_t queries = std::min(samples.count(), most);
  int64_t longest = 1;
  for (int64_t i = 0; i < queries; ++i) longest = std::max(longest, std::ssize(samples.rows(i).rows));
  Array targets(f32, {queries, longest});
  std::fill(targets.as<float>().begin(), targets.as<float>().end(), -1.0f);
  for (int64_t i = 0; i < queries; ++i) {
    const data::SampleRows own = samples.rows(i);
    for (size_t k = 0; k < own.rows.size(); ++k)
      read_relevance(*own.table, column, own.rows[k], 1,
                     &targets.as<float>()[static_cast<size_t>(i * longest) + k]);
  }
  return output.loss(Tensor::zeros({queries, longest, 1}), Tensor(targets), true).item();
}

std::unique_ptr<Output> learn_rank(const Section& section, const Reading& reading,
                                   std::span<const std::unique_ptr<Input>> /*inputs*/) {
  const Dataset& samples = *reading.samples;
  const std::string key = output_key(section);
  if (samples.count() == 0 || !samples.rows(0).table)
    fail<InputError>(
        "{}.kind = \"rank\": which rows are to be put in order? Say which column tells the rows of a query, "
        "as data.group = \"query\"",
        key);
  std::string column = section.settings.text("column");
  if (column.empty()) column = relevance_column(samples);
  if (column.empty())
    fail<InputError>("{}: how relevant are its rows? Set {}.column to the column that says it",
                     samples.path(), key);
  if (const std::string why = rank_refuses(samples, column); !why.empty())
    fail<InputError>("{}: {}", samples.path(), why);
  RankedStatistics known;
  known.queries = samples.count();
  const auto rows = data::rows_of(samples);
  std::vector<float> relevance(static_cast<size_t>(rows->count()));
  constexpr int64_t run = 1 << 14;
  for (int64_t first = 0; first < rows->count(); first += run)
    read_relevance(*rows, column, first, std::min(run, rows->count() - first),
                   &relevance[static_cast<size_t>(first)]);
  auto begin = relevance.begin();
  for (const int64_t size : data::group_sizes(samples)) {
    known.flat += std::all_of(begin, begin + size, [&](float each) { return each == *begin; });
    begin += size;
  }
  auto output = std::make_unique<RankOutput>(section, column, known);
  output->set_ignorance(loss_of_equals(*output, samples, column));
  return output;
}

std::unique_ptr<Output> load_rank(const Section& section, const std::string& encoding,
                                  std::span<const std::unique_ptr<Input>> /*inputs*/) {
  return read_encoding(encoding, output_key(section), [&](const nlohmann::json& json) {
    RankedStatistics known;
    known.ignorance = json.value("ignorance", NAN);
    return std::make_unique<RankOutput>(section, text_of_stored(json.at("column").get<std::string>()), known);
  });
}

}  // namespace

MILLRACE_OUTPUT(rank){
    .name = "rank",
    .doc =
        "the order of rows that belong together (data.group), by how relevant each is: documents of a query",
    .groups = true,
    .settings = {},
    .metrics = {"ndcg-10", "map", "mrr"},
    .loss = "lambdarank",
    .refuses = rank_refuses,
    .recognise = [](const Dataset& samples) -> std::string {
      return has_queries(samples) ? relevance_column(samples) : "";
    },
    .rank = 30,
    .learn = learn_rank,
    .load = load_rank,
};

}  // namespace millrace::task
