#include <cmath>
#include <doctest/doctest.h>

#include <millrace/error.h>

#include "eval/ranked_rows.h"
#include "eval/ranking.h"
#include "task/loss.h"
#include "task/query_derivatives.h"

using namespace millrace;

namespace {

const std::vector<std::string> ranking_losses = {"pair-logit", "lambdarank", "list-softmax", "query-rmse"};

Tensor scores_of(int64_t length, const std::vector<double>& scores, DType dtype = f64) {
  return Tensor(Array::of(dtype, {std::ssize(scores) / length, length, 1}, scores));
}
Tensor relevance_of(int64_t length, const std::vector<double>& relevance) {
  return Tensor(Array::of(f32, {std::ssize(relevance) / length, length}, relevance));
}

double ranking_loss(const std::string& name, const Tensor& scores, const Tensor& relevance, int64_t top = 0) {
  Settings settings(task::loss_kinds().at(name).settings);
  if (top > 0) settings.set("top", top);
  return static_cast<double>(task::loss_kinds().at(name).make(scores, relevance, settings, true).item());
}

}  // namespace

TEST_CASE("losses of rankings have the published values") {
  // CatBoost's QueryRMSE of relevances 1, 2, 4 and 3, 0 and scores 0, 1, 1 and 1, 1.
  CHECK(ranking_loss("query-rmse", scores_of(3, {0, 1, 1, 1, 1, 7}), relevance_of(3, {1, 2, 4, 3, 0, -1})) ==
        doctest::Approx(1.197219).epsilon(1e-6));
  // Two pairs whose better rows are 1 ahead and 1 behind.
  CHECK(ranking_loss("pair-logit", scores_of(2, {1, 0, 0, 1}), relevance_of(2, {1, 0, 1, 0})) ==
        doctest::Approx(0.813262).epsilon(1e-6));
  // Gains 7 and 1 of 8: 7/8 of the log of the share of the first, 1/8 of that of the second.
  const double all = std::exp(2.0) + std::exp(1.0) + 1;
  CHECK(ranking_loss("list-softmax", scores_of(3, {2, 1, 0}), relevance_of(3, {3, 1, 0})) ==
        doctest::Approx(-(7 * (2 - std::log(all)) + 1 - std::log(all)) / 8));
  // One pair, in the wrong order: gains 1 and 0 at places 1 and 0.
  const double change = 1 - 1 / std::log2(3.0);
  CHECK(ranking_loss("lambdarank", scores_of(2, {0, 2}), relevance_of(2, {1, 0})) ==
        doctest::Approx(change * std::log1p(std::exp(2.0))));
  // Of NDCG@1 nothing changes where two rows behind the first change places.
  CHECK(ranking_loss("lambdarank", scores_of(3, {9, 0, 2}), relevance_of(3, {2, 1, 0}), 1) ==
        doctest::Approx(std::log1p(std::exp(-9.0)) * 2 / 3 + std::log1p(std::exp(-7.0))));
}

TEST_CASE("losses of rankings have the gradients of finite differences, and their mean is that of queries") {
  const std::vector<double> scores = {0.3, -1.2, 0.8, 2.1, -0.4, 0.15, 0.6, 0.7, -0.9, 1.4, 0.2, 0.55};
  // Behind the second query's rows there are none; nothing is relevant in the third.
  const Tensor relevance = relevance_of(4, {0, 3, 1, 1, 2, 0, -1, -1, 0, 0, 0, -1});
  for (const std::string& name : ranking_losses) {
    CAPTURE(name);
    const task::LossKind& kind = task::loss_kinds().at(name);
    const Settings settings(kind.settings);
    const Tensor x = scores_of(4, scores);
    const auto result = value_and_gradients(
        [&](std::span<const Tensor> arguments) { return kind.make(arguments[0], relevance, settings, true); },
        std::span(&x, 1));
    const Array gradient = result.gradients[0].to_array();
    constexpr double step = 1e-5;
    for (size_t i = 0; i < scores.size(); ++i) {
      CAPTURE(i);
      std::vector<double> above = scores, below = scores;
      above[i] += step;
      below[i] -= step;
      const double wanted = (ranking_loss(name, scores_of(4, above), relevance) -
                             ranking_loss(name, scores_of(4, below), relevance)) /
                            (2 * step);
      CHECK(gradient.at(static_cast<int64_t>(i)) == doctest::Approx(wanted).epsilon(1e-6));
    }
    for (const int64_t nowhere : {6, 7, 11}) CHECK(gradient.at(nowhere) == 0);
    const Array each = kind.make(x, relevance, settings, false).to_array();
    REQUIRE(each.shape() == Shape{3});
    CHECK((each.at(0) + each.at(1) + each.at(2)) / 3 == doctest::Approx(ranking_loss(name, x, relevance)));
  }
}

TEST_CASE("derivatives of losses of rankings, query by query, are those of the losses") {
  // The last query's rows are all equally relevant, and one of the second's two equals.
  const std::vector<std::vector<double>> scores = {
      {0.3, -1.2, 0.8, 2.1}, {0.15, 0.6, 0.15}, {1.4, 0.2}, {0.55}, {30, -30}};
  const std::vector<std::vector<double>> relevance = {{0, 3, 1, 1.5}, {2, 0, 1}, {1, 1}, {4}, {0, 2}};
  for (const std::string& name : ranking_losses)
    for (const int64_t top : {0, 2}) {
      if (top > 0 && name != "lambdarank") continue;
      CAPTURE(name);
      CAPTURE(top);
      const task::LossKind& kind = task::loss_kinds().at(name);
      Settings settings(kind.settings);
      if (top > 0) settings.set("top", top);
      const task::QueryDerivatives derivatives({&kind, settings}, "output");
      const auto told = [&](size_t query, const std::vector<double>& at) {
        const std::vector<float> x(at.begin(), at.end()), y(relevance[query].begin(), relevance[query].end());
        std::vector<float> first(x.size(), 7), second(x.size(), 7);  // whatever was there before
        const task::QueryLoss loss = derivatives.query(x, y, first, second);
        return std::tuple(loss, first, second);
      };
      std::vector<double> all, grades;
      for (size_t query = 0; query < scores.size(); ++query) {
        CAPTURE(query);
        const auto [loss, first, second] = told(query, scores[query]);
        CHECK(loss.sum >= 0);
        for (size_t i = 0; i < 4; ++i) {
          all.push_back(i < scores[query].size() ? scores[query][i] : 0);
          grades.push_back(i < scores[query].size() ? relevance[query][i] : -1);
        }
        constexpr double step = 1e-2;  // places do not change by it
        for (size_t i = 0; i < scores[query].size(); ++i) {
          CAPTURE(i);
          std::vector<double> above = scores[query], below = above;
          above[i] += step;
          below[i] -= step;
          // Of equal scores the places change by any step.
          if (name == "lambdarank" && query == 1 && i != 1) continue;
          const auto [more, rising, unused_more] = told(query, above);
          const auto [less, falling, unused_less] = told(query, below);
          CHECK(static_cast<double>(first[i]) ==
                doctest::Approx((more.sum - less.sum) / (2 * step)).epsilon(1e-3).scale(.01));
          CHECK(static_cast<double>(second[i]) ==
                doctest::Approx((rising[i] - falling[i]) / (2 * step)).epsilon(1e-3).scale(.01));
        }
      }
      // Of all queries at once: the mean over all terms.
      std::vector<int64_t> sizes;
      std::vector<double> one_behind_the_other, graded;
      for (size_t query = 0; query < scores.size(); ++query) {
        sizes.push_back(std::ssize(scores[query]));
        one_behind_the_other.insert(one_behind_the_other.end(), scores[query].begin(), scores[query].end());
        graded.insert(graded.end(), relevance[query].begin(), relevance[query].end());
      }
      const int64_t rows = std::ssize(graded);
      const auto found =
          derivatives(sizes, Array::of(f32, {rows, 1}, one_behind_the_other), Array::of(f32, {rows}, graded));
      CHECK(
          found.loss ==
          doctest::Approx(ranking_loss(name, scores_of(4, all), relevance_of(4, grades), top)).epsilon(1e-5));
      for (const double each : found.second.to_doubles()) CHECK(each > 0);
    }
  const task::LossKind own{.name = "own"};
  CHECK_THROWS_WITH_AS(task::QueryDerivatives({&own, Settings(own.settings)}, "output"),
                       doctest::Contains("output.loss = \"own\" is for models that learn by steps"),
                       InputError);
}

TEST_CASE("losses of rankings without anything to order are 0, and so are their gradients") {
  for (const std::string& name : ranking_losses) {
    CAPTURE(name);
    const task::LossKind& kind = task::loss_kinds().at(name);
    const Settings settings(kind.settings);
    for (const Tensor& relevance : {relevance_of(2, {2, -1}), relevance_of(2, {-1, -1})}) {
      const Tensor x = scores_of(2, {0.5, 3}, f32);
      const auto result = value_and_gradients(
          [&](std::span<const Tensor> arguments) {
            return kind.make(arguments[0], relevance, settings, true);
          },
          std::span(&x, 1));
      CHECK(std::abs(result.value.to_array().at(0)) < 1e-5);
      for (const int64_t i : {0, 1}) CHECK(result.gradients[0].to_array().at(i) == doctest::Approx(0));
    }
  }
}

TEST_CASE("NDCG in the graph is that of evaluation") {
  const std::vector<double> scores = {0.3, -1.2, 0.8, 2.1, 0.9, -0.4}, relevance = {2, 3, 0, 1, 3, 2};
  const std::vector<float> plain(scores.begin(), scores.end());
  for (const int64_t top : {0, 1, 3, 5}) {
    const eval::RankedRows rows(scores_of(6, scores), relevance_of(6, relevance));
    CHECK(rows.ndcg(top).to_array().at(0) == doctest::Approx(eval::ndcg(plain, relevance, top)));
  }
  // In the order of the scores relevances are 3, 2, 3, 0, 1, 2.
  const eval::RankedRows known(scores_of(6, {6, 5, 4, 3, 2, 1}), relevance_of(6, {3, 2, 3, 0, 1, 2}));
  CHECK(known.ndcg(0).to_array().at(0) == doctest::Approx(0.948811).epsilon(1e-6));
  const eval::RankedRows none(scores_of(2, {1, 0}), relevance_of(2, {0, -1}));
  CHECK(none.ndcg(10).to_array().at(0) == 1);
}
