#include "task/query_derivatives.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/format.h"

namespace millrace::task {
namespace {

using Scores = std::span<const float>;
using Slopes = std::span<float>;

/// Adds log(1 + exp(score of j - score of i)), times weight(i, j), of each pair of rows of which i is more
/// relevant than j, with its derivatives. How many pairs there are comes back, too.
template <typename Weight>
QueryLoss pair_terms(Scores scores, Scores relevance, Slopes first, Slopes second, Weight&& weight) {
  std::fill(first.begin(), first.end(), 0.0f);
  std::fill(second.begin(), second.end(), 0.0f);
  QueryLoss loss;
  for (size_t i = 0; i < scores.size(); ++i)
    for (size_t j = 0; j < scores.size(); ++j) {
      if (!(relevance[i] > relevance[j])) continue;
      ++loss.terms;
      const double counts = weight(i, j), ahead = static_cast<double>(scores[i]) - scores[j];
      const double small = std::exp(-std::abs(ahead));
      loss.sum += counts * (std::log1p(small) + std::max(-ahead, 0.0));
      // The chance that the worse one is put first.
      const double wrong = ahead >= 0 ? small / (1 + small) : 1 / (1 + small);
      const auto slope = static_cast<float>(counts * wrong),
                 curve = static_cast<float>(counts * wrong * (1 - wrong));
      first[i] -= slope;
      first[j] += slope;
      second[i] += curve;
      second[j] += curve;
    }
  return loss;
}

QueryLoss pair_logit(Scores scores, Scores relevance, const Settings& /*settings*/, Slopes first,
                     Slopes second) {
  return pair_terms(scores, relevance, first, second, [](size_t /*i*/, size_t /*j*/) { return 1.0; });
}

/// Of each row the discount of its place, where the greatest of `values` stands first, and of equals the
/// first.
std::vector<double> row_discounts(Scores values, int64_t top) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] > values[b]; });
  std::vector<double> found(values.size());
  for (size_t place = 0; place < order.size(); ++place)
    if (top == 0 || static_cast<int64_t>(place) < top)
      found[order[place]] = 1 / std::log2(static_cast<double>(place) + 2);
  return found;
}

double gain_of(float relevance) { return std::exp2(static_cast<double>(relevance)) - 1; }

QueryLoss lambdarank(Scores scores, Scores relevance, const Settings& settings, Slopes first, Slopes second) {
  const int64_t top = settings.integer("top");
  const std::vector<double> found = row_discounts(scores, top), wanted = row_discounts(relevance, top);
  double best = 0;
  for (size_t i = 0; i < scores.size(); ++i) best += gain_of(relevance[i]) * wanted[i];
  const QueryLoss loss = pair_terms(scores, relevance, first, second, [&](size_t i, size_t j) {
    return std::abs((gain_of(relevance[i]) - gain_of(relevance[j])) * (found[i] - found[j])) /
           (best > 0 ? best : 1);
  });
  return {loss.sum, 1};
}

QueryLoss list_softmax(Scores scores, Scores relevance, const Settings& /*settings*/, Slopes first,
                       Slopes second) {
  double gains = 0, chances = 0, sum = 0;
  const double most = *std::max_element(scores.begin(), scores.end());
  for (size_t i = 0; i < scores.size(); ++i) {
    gains += gain_of(relevance[i]);
    chances += std::exp(scores[i] - most);
  }
  for (size_t i = 0; i < scores.size(); ++i) {
    const double share = gains > 0 ? gain_of(relevance[i]) / gains : 0;
    const double chance = std::exp(scores[i] - most) / chances;
    sum -= share * (scores[i] - most - std::log(chances));
    first[i] = gains > 0 ? static_cast<float>(chance - share) : 0;
    second[i] = gains > 0 ? static_cast<float>(chance * (1 - chance)) : 0;
  }
  return {sum, gains > 0 ? 1.0 : 0.0};
}

/// Of the squares, whose mean has the loss for its root.
QueryLoss query_rmse(Scores scores, Scores relevance, const Settings& /*settings*/, Slopes first,
                     Slopes second) {
  const auto rows = static_cast<double>(scores.size());
  double mean = 0, sum = 0;
  for (size_t i = 0; i < scores.size(); ++i) mean += (static_cast<double>(relevance[i]) - scores[i]) / rows;
  for (size_t i = 0; i < scores.size(); ++i) {
    const double error = static_cast<double>(relevance[i]) - scores[i] - mean;
    sum += error * error;
    first[i] = static_cast<float>(-2 * error);
    second[i] = static_cast<float>(2 * (1 - 1 / rows));
  }
  return {sum, rows};
}

}  // namespace

QueryDerivatives::QueryDerivatives(const ChosenLoss& loss, const std::string& key)
    : settings_(loss.settings), root_(loss.kind->name == "query-rmse") {
  const std::string& name = loss.kind->name;
  query_ = name == "lambdarank"     ? lambdarank
           : name == "pair-logit"   ? pair_logit
           : name == "list-softmax" ? list_softmax
           : name == "query-rmse"   ? query_rmse
                                    : nullptr;
  if (!query_)
    fail<InputError>(
        "{}.loss = \"{}\" is for models that learn by steps; trees learn rankings by lambdarank, "
        "list-softmax, pair-logit or query-rmse",
        key, name);
}

QueryLoss QueryDerivatives::query(Scores scores, Scores relevance, Slopes first, Slopes second) const {
  return query_(scores, relevance, settings_, first, second);
}

QueryDerivatives::Found QueryDerivatives::operator()(std::span<const int64_t> queries, const Array& scores,
                                                     const Array& relevance) const {
  const int64_t rows = scores.count();
  Found found{0, Array(f32, {rows, 1}), Array(f32, {rows, 1})};
  const auto first = found.first.as<float>(), second = found.second.as<float>();
  QueryLoss all;
  size_t begin = 0;
  for (const int64_t each : queries) {
    const auto size = static_cast<size_t>(each);
    const QueryLoss one =
        query(scores.as<float>().subspan(begin, size), relevance.as<float>().subspan(begin, size),
              first.subspan(begin, size), second.subspan(begin, size));
    all.sum += one.sum;
    all.terms += one.terms;
    begin += size;
  }
  // Rows that are in no pair have no curvature, and leaves divide by it.
  constexpr float least = 1e-16f;
  for (float& each : second) each = std::max(each, least);
  const double mean = all.terms > 0 ? all.sum / all.terms : 0;
  found.loss = root_ ? std::sqrt(mean) : mean;
  return found;
}

}  // namespace millrace::task
