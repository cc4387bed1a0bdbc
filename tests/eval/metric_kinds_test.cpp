// What single metrics say, beside values of scikit-learn 1.9.1 (the functions are named; average=,
// zero_division=0 where it takes them), of rows that f32 holds exactly.
#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <map>

#include <millrace/error.h>
#include <millrace/random.h>

#include "eval/curves.h"
#include "eval/metric.h"
#include "eval/ranking.h"

using namespace millrace;
using namespace millrace::eval;

namespace {

struct KnownRows {
  std::vector<float> outputs;
  int64_t width = 1;
  std::vector<int64_t> labels = {};
  std::vector<double> values = {}, thresholds = {};
  std::vector<int64_t> queries = {};

  Judged judged() const {
    return {.outputs = outputs,
            .rows = static_cast<int64_t>(outputs.size()) / width,
            .width = width,
            .labels = labels,
            .values = values,
            .thresholds = thresholds,
            .queries = queries};
  }
};

Measured of(const std::string& metric, const std::string& output, const KnownRows& rows) {
  Measurement measurement({metric}, output);
  measurement.update(rows.judged());
  return measurement.finalize().front();
}

void check_all(const std::string& output, const KnownRows& rows,
               const std::map<std::string, double>& expected) {
  for (const auto& [metric, value] : expected) {
    CAPTURE(metric);
    CHECK(of(metric, output, rows).value == doctest::Approx(value).epsilon(1e-12));
  }
}

/// Two classes, with equal scores: logits 0 and these.
const std::vector<double> tied = {.5, -1, 2, .5, .25, -.5, 3, .5, -1, 1};

KnownRows two_classes() {
  KnownRows rows{{}, 2, {1, 0, 1, 0, 0, 1, 1, 1, 0, 0}};
  for (const double logit : tied) rows.outputs.insert(rows.outputs.end(), {0, static_cast<float>(logit)});
  return rows;
}

const KnownRows three_classes{
    {2, 0.5F, -1, 0, 1, 0.25F, 1.5F, 1.5F, 0, -1, 0, 2, 0.5F, -0.25F, 0.25F, 1, 2, 3, 0, 0, 0, 3, -2, 0.5F},
    3,
    {0, 1, 1, 2, 2, 2, 0, 1}};

const KnownRows three_labels{
    {1.5F, -2, 0.25F, -1, 3, -0.5F, 0, -1, 2, 2, 1, -3}, 3, {}, {1, 0, 0, 0, 1, 1, 1, 1, 1, 1, 0, 1}};

}  // namespace

TEST_CASE("metrics of two classes are of the second one, as scikit-learn's with pos_label=1") {
  check_all("class", two_classes(),
            {{"precision", 0.5714285714285714},
             {"recall", 0.8},
             {"f1", 0.6666666666666666},
             {"kappa", 0.19999999999999996},
             {"matthews", 0.2182178902359924},
             {"brier", 0.2071591741052637},
             {"roc-auc-exact", 0.76},
             {"pr-auc-exact", 0.7916666666666665}});
}

TEST_CASE(
    "metrics of more classes are scikit-learn's macro and micro ones, curves of each against the rest") {
  check_all("class", three_classes,
            {{"precision", 0.7999999999999999},
             {"macro-precision", 0.7999999999999999},
             {"micro-precision", 0.625},
             {"recall", 0.6666666666666666},
             {"macro-recall", 0.6666666666666666},
             {"micro-recall", 0.625},
             {"f1", 0.6238095238095238},
             {"macro-f1", 0.6238095238095238},
             {"micro-f1", 0.625},
             {"kappa", 0.4666666666666667},
             {"matthews", 0.5557189302262113},
             {"brier", 0.5374469728750879},
             {"roc-auc-exact", 0.7777777777777778},
             {"pr-auc-exact", 0.7472222222222222},
             {"top-2", 0.875},  // of equals the first, where top_k_accuracy_score takes the last: 0.75
             {"top-1", 0.625}});
}

TEST_CASE("metrics of labels are micro, curves the mean over labels") {
  check_all("classes", three_labels,
            {{"precision", 0.6666666666666666},
             {"macro-precision", 0.6666666666666666},
             {"recall", 0.5},
             {"macro-recall", 0.49999999999999994},
             {"f1", 0.5714285714285714},
             {"micro-f1", 0.5714285714285714},
             {"macro-f1", 0.5666666666666668},
             {"brier", 0.2566895481820043},
             {"log-loss", 0.7593600551193931},
             {"roc-auc-exact", 0.6944444444444445},
             {"pr-auc-exact", 0.8796296296296297}});
}

TEST_CASE(
    "metrics of errors are scikit-learn's uniform_average, and mape of a target of 0 is huge as there") {
  const KnownRows rows{{1.0F, 2001, 2.5F, 2008, 0.0F, 2005, 3.0F, 1995, 3.5F, 2000},
                       2,
                       {},
                       {1.5, 2000, 2.0, 2010, -0.5, 2005, 4.0, 1990, 3.25, 2003}};
  check_all(
      "number", rows,
      {{"mape", 0.19157617513160474}, {"mse", 4.08125}, {"pinball-90", 0.6575}, {"pinball-50", 0.6875}});
  CHECK(of("mape", "number", {{1, 1}, 1, {}, {0, 1}}).value == 2251799813685248.0);
}

TEST_CASE("metrics of what they cannot know are NaN, or 0 as scikit-learn has it") {
  // One class only: no pairs, no chance; nothing told of the second.
  const KnownRows one{{1, 0, 2, 0, 0, 3}, 2, {0, 0, 0}}, all_right{{1, 0, 2, 0}, 2, {0, 0}};
  for (const char* metric : {"roc-auc", "roc-auc-exact", "pr-auc", "pr-auc-exact"}) {
    CAPTURE(metric);
    CHECK(std::isnan(of(metric, "class", one).value));
  }
  CHECK(std::isnan(of("kappa", "class", all_right).value));
  CHECK(of("matthews", "class", all_right).value == 0);
  CHECK(of("f1", "class", all_right).value == 0);
  CHECK(of("recall", "class", one).value == 0);
  CHECK(of("pr-auc-exact", "class", {{0, 1, 0, 2}, 2, {1, 1}}).value == 1);
  // A class that neither is nor is told is left out; of labels it counts as 0, as a column does there.
  KnownRows four{{}, 4, three_classes.labels};
  for (size_t i = 0; i < three_classes.outputs.size(); ++i) {
    four.outputs.push_back(three_classes.outputs[i]);
    if (i % 3 == 2) four.outputs.push_back(-50);
  }
  CHECK(of("macro-f1", "class", four).value == doctest::Approx(0.6238095238095238));
  CHECK(of("roc-auc-exact", "class", four).value == doctest::Approx(0.7777777777777778).epsilon(1e-12));
  CHECK(of("macro-f1", "classes", {{1, -1}, 2, {}, {1, 0}}).value == 0.5);
  CHECK(std::isnan(of("roc-auc", "class", {{NAN, 0, 1, 0}, 2, {0, 1}}).value));
}

/// Rows of two classes whose scores are so far apart, around `middle`.
static KnownRows scored_rows(uint32_t count, float scale, float middle) {
  KnownRows rows{{}, 2, {}};
  for (uint32_t i = 0; i < count; ++i) {
    const auto bits = philox({i, 5, 0, 0}, {11, 12});
    const int64_t label = bits[0] % 4 == 0;
    const double normal = std::sqrt(-2 * std::log((bits[1] + 1.0) / 4294967296.0)) *
                          std::cos(2 * M_PI * bits[2] / 4294967296.0);
    rows.labels.push_back(label);
    rows.outputs.insert(rows.outputs.end(),
                        {0, middle + scale * static_cast<float>(normal + 1.2 * static_cast<double>(label))});
  }
  return rows;
}

TEST_CASE("areas of scores in bins are nearly those of the scores, be they near, far apart or far from 0") {
  const std::vector<std::pair<float, float>> scales_and_middles = {
      {1e-4F, 0}, {1e-4F, 30}, {0.05F, -1.5F}, {1, 0}, {40, 30}};
  for (const auto& [scale, middle] : scales_and_middles) {
    const KnownRows few = scored_rows(1000, scale, middle), many = scored_rows(40000, scale, middle);
    for (const std::string metric : {"roc-auc", "pr-auc"}) {
      CAPTURE(metric);
      CAPTURE(scale);
      CAPTURE(middle);
      CHECK(of(metric, "class", few).value == of(metric + "-exact", "class", few).value);
      const double exact = of(metric + "-exact", "class", many).value,
                   binned = of(metric, "class", many).value;
      if (scale > 0.01F) CHECK(exact != binned);
      CHECK(binned == doctest::Approx(exact).epsilon(1e-4));
    }
  }
}

TEST_CASE("bins of scores are the same whatever order these come in, and however they are split") {
  const KnownRows rows = scored_rows(3000, 1, -2);
  const auto add = [&](BinnedScores& scores, size_t row) {
    scores.add(rows.outputs[2 * row + 1], rows.labels[row] == 1);
  };
  const auto area = [](const BinnedScores& scores) { return precision_area(scores); };
  constexpr int64_t curves = 1000;  // little room
  BinnedScores forwards(curves), backwards(curves), merged(curves);
  for (size_t i = 0; i < 3000; ++i) {
    add(forwards, i);
    add(backwards, 2999 - i);
  }
  const size_t parts[] = {0, 40, 1500, 3000};  // the first has few
  for (int part = 0; part < 3; ++part) {
    BinnedScores own(curves);
    for (size_t i = parts[part]; i < parts[part + 1]; ++i) add(own, i);
    merged.merge(own);
  }
  CHECK_FALSE(forwards.told_apart());
  CHECK(forwards.descending().size() <= 128);
  CHECK(forwards.descending().size() > 32);
  CHECK(area(forwards) == area(backwards));
  CHECK(area(forwards) == area(merged));
}

TEST_CASE("log odds keep what is left beside a probability of 1") {
  // sklearn would find both rows at p = 1; here the second is surer.
  CHECK(of("roc-auc-exact", "class", {{60, 0, 0, 90, 0, 0, 0, 1, 0}, 3, {1, 0, 2}}).value ==
        doctest::Approx((1 + 0.5 + 1) / 3));
}

TEST_CASE("thresholds decide, and leave probabilities alone") {
  KnownRows rows = two_classes();
  rows.thresholds = {0.3125};
  KnownRows shifted = two_classes();
  for (size_t i = 1; i < shifted.outputs.size(); i += 2) shifted.outputs[i] -= 0.3125F;
  for (const char* metric : {"accuracy", "f1", "kappa", "matthews", "macro-recall"}) {
    CAPTURE(metric);
    CHECK(of(metric, "class", rows).value == of(metric, "class", shifted).value);
    CHECK(of(metric, "class", rows).value != of(metric, "class", two_classes()).value);
  }
  for (const char* metric : {"log-loss", "brier", "ece", "roc-auc"})
    CHECK(of(metric, "class", rows).value == of(metric, "class", two_classes()).value);
  KnownRows labels = three_labels;
  labels.thresholds = {0, -1.5, 1};  // told: + − −, − + −, − + +, + + −
  CHECK(of("label-accuracy", "classes", labels).value == doctest::Approx(8.0 / 12));
  CHECK(of("f1", "classes", labels).value == doctest::Approx(2.0 * 5 / (6 + 8)));
  rows.thresholds = {0, 0};
  CHECK_THROWS_AS(of("accuracy", "class", rows), InternalError);
}

TEST_CASE("a metric of another number is found by its name") {
  CHECK(metric_kind("top-3").name == "top-3");
  CHECK(&metric_kind("top-3") == &metric_kind("top-3"));
  CHECK(find_metric("top-5") == metric_kinds().find("top-5"));
  CHECK(find_metric("ndcg-5"));
  for (const char* none :
       {"top-0", "top-", "top-x", "top-05", "pinball-100", "pinball-0", "top--3", "rmse-3"}) {
    CAPTURE(none);
    CHECK(!find_metric(none));
  }
  CHECK_THROWS_AS(metric_kind("top-x"), InputError);
}

TEST_CASE("ranking is measured as by scikit-learn's ndcg_score and label_ranking_average_precision_score") {
  const std::vector<double> relevance = {3, 2, 3, 0, 1, 2}, relevant = {1, 1, 1, 0, 0, 1};
  const std::vector<float> scores = {6, 5, 4, 3, 2, 1}, equal = {1, 1, 1, 0, 0, 2};
  CHECK(ndcg(scores, relevance) == doctest::Approx(0.9488107485678983).epsilon(1e-12));
  CHECK(ndcg(scores, relevance, 3) == doctest::Approx(0.9594535145926795).epsilon(1e-12));
  CHECK(ndcg(equal, relevance) == doctest::Approx(0.8372939535326085).epsilon(1e-12));
  CHECK(ndcg(equal, relevance, 2) == doctest::Approx(0.5759439265655396).epsilon(1e-12));
  CHECK(query_average_precision(scores, relevant) == doctest::Approx(0.9166666666666666).epsilon(1e-12));
  CHECK(query_average_precision(equal, relevant) == 1);
  CHECK(reciprocal_rank(scores, std::vector<double>{0, 0, 0, 2, 0, 1}) == 0.25);
  // Of rows with equal scores each order is as likely.
  CHECK(reciprocal_rank(equal, std::vector<double>{0, 1, 0, 0, 0, 0}) ==
        doctest::Approx((1.0 / 2 + 1.0 / 3 + 1.0 / 4) / 3));
  CHECK(reciprocal_rank(equal, std::vector<double>{0, 1, 1, 0, 0, 0}) ==
        doctest::Approx(2.0 / 3 / 2 + 1.0 / 3 / 3));
  CHECK(reciprocal_rank(equal, std::vector<double>{1, 1, 1, 0, 0, 0}) == doctest::Approx(0.5));
  CHECK(reciprocal_rank(std::vector<float>(4, 1), std::vector<double>{1, 2, 3, 4}) == 1);
  for (const double none :
       {ndcg(scores, std::vector<double>(6)), ndcg({}, {}), reciprocal_rank(scores, std::vector<double>(6)),
        query_average_precision(scores, std::vector<double>(6)),
        ndcg(std::vector<float>{NAN, 1}, std::vector<double>{1, 0})})
    CHECK(std::isnan(none));
}

TEST_CASE("metrics of rankings are means over queries, of which those without relevant rows are left out") {
  const KnownRows rows{{6, 5, 4, 3, 2, 1, 1, 2, 5, 6}, 1,  {},
                       {3, 2, 3, 0, 1, 2, 0, 0, 1, 0}, {}, {7, 7, 7, 7, 7, 7, 3, 3, 9, 9}};
  const double second = 1 / std::log2(3);
  check_all("rank", rows,
            {{"ndcg", (0.9488107485678983 + second) / 2},
             {"ndcg-3", (0.9594535145926795 + second) / 2},
             {"ndcg-1", 0.5},
             {"map", ((1.0 + 1 + 1 + 0.8 + 5.0 / 6) / 5 + 0.5) / 2},
             {"mrr", 0.75}});
  Measurement measurement({"ndcg"}, "rank");
  measurement.update(rows.judged());
  CHECK(measurement.count() == 3);
}

TEST_CASE("what a training step shows of a metric is the metric of its rows") {
  /// The same rows as arrays of a step; a query is one of these.
  struct Shown {
    const char *metric, *output;
    KnownRows rows;
    Tensor outputs, targets;
  };
  const auto floats = [](const Shape& shape, const auto& numbers) {
    return Tensor(Array::of(f32, shape, std::vector<double>(numbers.begin(), numbers.end())));
  };
  const KnownRows numbers{{1, 200, 2.5F, 208, 0, 205, 3, 195}, 2, {}, {1.5, 200, 2, 210, -0.5, 205, 4, 190}};
  const KnownRows queries{{3, 1, 2, 0.5F, -1, 2}, 1, {}, {0, 2, 1, 3, 0, 1}, {}, {0, 0, 0, 1, 1, 1}};
  const std::vector<Shown> all = {
      {"accuracy", "class", three_classes, floats({8, 3}, three_classes.outputs),
       Tensor(Array::of(i64, {8},
                        std::vector<double>(three_classes.labels.begin(), three_classes.labels.end())))},
      {"label-accuracy", "classes", three_labels, floats({4, 3}, three_labels.outputs),
       floats({4, 3}, three_labels.values)},
      {"mae", "number", numbers, floats({4, 2}, numbers.outputs), floats({4, 2}, numbers.values)},
      {"ndcg-10", "rank", queries, floats({2, 3, 1}, queries.outputs), floats({2, 3}, queries.values)}};
  for (const MetricKind* kind : metric_kinds().all()) {
    if (!kind->of_rows) continue;
    CAPTURE(kind->name);
    const auto at =
        std::find_if(all.begin(), all.end(), [&](const Shown& each) { return kind->name == each.metric; });
    REQUIRE(at != all.end());
    const Tensor rows = kind->of_rows(at->outputs, at->targets);
    CHECK(rows.dtype() == f32);
    CHECK(rows.shape() == Shape{at->outputs.dim(0)});
    CHECK(rows.mean().item() == doctest::Approx(of(at->metric, at->output, at->rows).value).epsilon(1e-6));
  }
  // One of another number is another metric.
  CHECK_FALSE(metric_kind("ndcg-2").of_rows);
}
