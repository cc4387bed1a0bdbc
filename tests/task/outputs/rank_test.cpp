#include <cmath>
#include <doctest/doctest.h>
#include <map>

#include "data/feed/sample_feed.h"
#include "data/table/group.h"
#include "task/kind_sections.h"

using namespace millrace;
using namespace millrace::testing;
using data::ColumnKind;

namespace {

/// Queries of 3, 1 and 2 rows, whose rows do not stand together.
std::shared_ptr<const data::Dataset> queries(std::vector<int64_t> relevance = {2, 0, 1, 3, 0, 0}) {
  const std::vector<int64_t> query = {4, 4, 9, 7, 9, 4};
  std::vector<std::vector<data::Value>> rows;
  for (size_t i = 0; i < query.size(); ++i)
    rows.push_back({query[i], relevance[i], 0.5 * static_cast<double>(i)});
  return data::grouped(
      rows_of({{"query", ColumnKind::integer}, {"label", ColumnKind::integer}, {"x", ColumnKind::real}},
              std::move(rows)),
      "query");
}

std::shared_ptr<const data::Dataset> rows_alone() {
  return rows_of({{"label", ColumnKind::integer}, {"x", ColumnKind::real}}, {{int64_t{1}, 0.5}});
}

const Items by_label = {{"column", std::string("label")}};

struct Batches {
  std::vector<std::vector<float>> targets;
  std::vector<std::vector<double>> numbers;
  std::vector<int64_t> lengths, samples;
};

/// What a feed makes of them, in `batches` batches of two queries.
Batches batches_of(const std::string& order, int batches, task::Purpose purpose,
                   data::Cursor from = {3, 0, 0}) {
  task::Recipe recipe;
  recipe.data.group = "query";
  recipe.data.order = order;
  const auto samples = queries();
  const task::Reading reading{recipe, samples, {"query", "label"}};
  const auto input = task::input_kinds().at("queries").learn(input_section("queries"), reading);
  const auto output = learnt_output("rank", by_label, samples);
  const auto part = input->part(reading, purpose);
  data::FeedOptions options;
  options.batch = 2;
  options.drop_last = purpose == task::Purpose::training;
  options.cache_bytes = 1 << 20;
  const auto feed = data::sample_feed(samples, {{"", part, false}, {"", output->part(reading), true}},
                                      input->rows(*part, reading, purpose, 2), options);
  feed->seek(from);
  Batches made;
  for (int b = 0; b < batches; ++b) {
    const data::FeedBatch& batch = feed->next();
    const Array targets = feed->array(batch, feed->field("target")),
                numbers = feed->array(batch, feed->field("numbers"));
    made.targets.emplace_back(targets.as<float>().begin(), targets.as<float>().end());
    made.numbers.emplace_back(numbers.as<double>().begin(), numbers.as<double>().end());
    made.lengths.push_back(batch.length);
    made.samples.insert(made.samples.end(), batch.samples.begin(), batch.samples.end());
  }
  return made;
}

}  // namespace

TEST_CASE("queries: all rows of a query stand in one row of a batch, behind them nothing") {
  const Batches made = batches_of("shuffle", 2, task::Purpose::evaluation);
  REQUIRE(made.samples.size() == 3);
  const std::map<int64_t, std::pair<std::vector<float>, std::vector<double>>> wanted = {
      {0, {{2, 0, 0}, {0, 0.5, 2.5}}}, {1, {{1, 0}, {1, 2}}}, {2, {{3}, {1.5}}}};
  for (size_t i = 0; i < made.samples.size(); ++i) {
    const auto& [relevance, numbers] = wanted.at(made.samples[i]);
    const auto length = static_cast<size_t>(made.lengths[i / 2]);
    REQUIRE(length >= relevance.size());
    for (size_t k = 0; k < length; ++k) {
      const size_t at = i % 2 * length + k;
      CHECK(made.targets[i / 2][at] == (k < relevance.size() ? relevance[k] : -1.0f));
      const double number = made.numbers[i / 2][at];
      if (k < numbers.size())
        CHECK(number == numbers[k]);
      else
        CHECK(std::isnan(number));
    }
  }
  // The last batch has one query; its other row only pads.
  const auto last = static_cast<size_t>(made.lengths[1]);
  for (size_t k = 0; k < last; ++k) CHECK(made.targets[1][last + k] == -1);
}

TEST_CASE("queries: a feed that goes on from a cursor gives the same batches") {
  const Batches whole = batches_of("shuffle", 6, task::Purpose::training),
                rest = batches_of("shuffle", 3, task::Purpose::training, {3, 3, 0});
  CHECK(std::vector(whole.samples.begin() + 6, whole.samples.end()) == rest.samples);
  CHECK(std::vector(whole.targets.begin() + 3, whole.targets.end()) == rest.targets);
}

TEST_CASE("queries: what a row is made of is learnt from all rows, and kept") {
  task::Recipe recipe;
  const auto samples = queries();
  const task::Reading reading{recipe, samples, {"query", "label"}};
  const auto input = task::input_kinds().at("queries").learn(input_section("queries"), reading);
  CHECK(input->columns() == std::vector<std::string>{"x"});
  CHECK(input->length() == 3);
  const auto again = task::input_kinds().at("queries").load(input_section("queries"), input->encoding());
  CHECK(again->encoding() == input->encoding());
  CHECK(again->length() == 3);
  // Standardised over all six rows, in a batch of queries.
  const Tensor made = again->graph(std::vector{Tensor::of({1, 2, 1}, {0, 2.5}, f64)}, false)[0];
  CHECK(made.shape() == Shape{1, 2, 1});
  CHECK(made.to_array().at(0) == doctest::Approx(-1.25 / std::sqrt(17.5 / 24)));
  CHECK(made.to_array().at(1) == doctest::Approx(-made.to_array().at(0)));
  CHECK(refusal([&] {
          (void)task::input_kinds().at("queries").load(input_section("queries"), "{}");
        }).find("damaged") != std::string::npos);
  CHECK(refusal([&] {
          const task::Reading plain{recipe, rows_alone(), {}};
          (void)task::input_kinds().at("queries").learn(input_section("queries"), plain);
        }).find("data.group = \"query\"") != std::string::npos);
}

TEST_CASE("rank: judged by queries, without what pads them and rows that do not count") {
  const auto output = learnt_output("rank", by_label, queries());
  // The relevant row second of three: NDCG 1 / log2(3); then first of two; the third query is padding.
  const std::vector<float> scores = {0.1f, 0.9f, 0.0f, 3, 2, 99, 1, 1, 1};
  const std::vector<float> relevance = {1, 0, 0, 1, 0, -1, 1, 0, 0};
  const auto values = judged(*output, scores, relevance, {1, 1, 0}, {"ndcg-10", "map", "mrr"}, 3);
  CHECK(values.at("ndcg-10") == doctest::Approx((1 / std::log2(3.0) + 1) / 2));
  CHECK(values.at("map") == doctest::Approx(0.75));
  CHECK(values.at("mrr") == doctest::Approx(0.75));
}

TEST_CASE("rank: what is learnt of relevances, and how predictions are told") {
  const auto output = learnt_output("rank", {{"loss", std::string("pair-logit")}}, queries());
  CHECK(output->section().settings.text("column") == "label");
  CHECK(output->ignorance() == doctest::Approx(std::log(2)));
  CHECK(output->notes() ==
        std::vector<std::string>{
            "1 of 3 queries have rows that are all equally relevant, which teach no order"});
  const auto again =
      task::output_kinds().at("rank").load(output_section("rank", by_label), output->encoding(), {});
  CHECK(again->ignorance() == doctest::Approx(std::log(2)));
  const std::vector<float> scores = {0.5f, 2, -1};
  const task::Prediction told = output->predict(scores, 2);
  CHECK(told.text == "row 2 (2), row 1 (0.5) … of 3");
  CHECK(told.json ==
        std::vector<std::pair<std::string, std::string>>{{"order", "[1, 0, 2]"}, {"scores", "[0.5, 2, -1]"}});
  const std::vector<float> target = {2, 0, -1};
  CHECK(output->target_text(bytes_of(target)) == "label of its rows: 2 0");
}

TEST_CASE("rank: booleans are relevances, as clicks are") {
  const auto learn = [](ColumnKind kind, const data::Value& yes, const data::Value& no) {
    return learnt_output("rank", by_label,
                         data::grouped(rows_of({{"query", ColumnKind::integer}, {"label", kind}},
                                               {{int64_t{1}, yes}, {int64_t{1}, no}, {int64_t{1}, no}}),
                                       "query"));
  };
  const std::string yes = "true", no = "False";
  CHECK(learn(ColumnKind::text, yes, no)->ignorance() ==
        learn(ColumnKind::integer, int64_t{1}, int64_t{0})->ignorance());
  CHECK(refusal([&] {
          (void)learn(ColumnKind::text, std::string("clicked"), no);
        }).find("holds texts, not relevances") != std::string::npos);
}

TEST_CASE("rank: what cannot be relevances is refused, with its place") {
  const auto why = [](std::vector<int64_t> relevance) {
    return refusal([&] { (void)learnt_output("rank", by_label, queries(std::move(relevance))); });
  };
  CHECK(why({2, 0, 1, -3, 0, 0}).find("its label is -3; relevances are numbers from 0") != std::string::npos);
  CHECK(why({2, 0, 1, 4000, 0, 0}).find("its label is 4000") != std::string::npos);
  CHECK(refusal([&] {
          (void)learnt_output("rank", by_label, rows_alone());
        }).find("data.group = \"query\"") != std::string::npos);
  CHECK(learnt_output("rank", by_label, queries({1, 1, 0, 0, 0, 1}))->notes()[0].find("leaves nothing") !=
        std::string::npos);
}
