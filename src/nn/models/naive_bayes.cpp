// Naive Bayes: of each class how often it is, the mean and variance of each number in it (as if it were
// Gaussian), and how often each category is in it; all taken for independent of each other.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "base/format.h"
#include "nn/models/architecture.h"
#include "nn/models/fitted.h"

namespace millrace::nn::models {
namespace {

class NaiveBayes final : public Fitted {
 public:
  NaiveBayes(ModelOptions options, const Settings& settings)
      : options_(std::move(options)),
        outputs_(options_.classes),
        smoothing_(settings.number("smoothing")),
        variance_smoothing_(settings.number("variance_smoothing")),
        ids_(std::accumulate(options_.ids.begin(), options_.ids.end(), int64_t{0})),
        prior_(buffer("log_prior", Array(f32, {outputs_}))),
        mean_(buffer("mean", Array(f32, {outputs_, options_.numbers}))),
        variance_(buffer("variance", Array::full(f32, {outputs_, options_.numbers}, 1))),
        frequency_(buffer("log_frequency", Array(f32, {ids_, outputs_}))) {}

  /// Joint log-likelihoods of all classes; of labels, of each the one that it holds less the one that it does
  /// not.
  Tensor forward_many(std::span<const Tensor> inputs) override {
    const Dim batch = inputs[0].dim(0);
    Tensor joint = broadcast_to(unsqueeze(prior_, 0), {batch, prior_.dim(0)});
    if (options_.numbers > 0) {
      const Tensor away = unsqueeze(inputs[0], 1) - unsqueeze(mean_, 0);
      const Tensor terms =
          away * away / unsqueeze(variance_, 0) + unsqueeze(log(variance_ * (2 * std::numbers::pi)), 0);
      joint = joint - 0.5 * terms.sum({2});
    }
    for (size_t c = 0, first = 0; c < options_.ids.size(); ++c) {
      const Tensor ids = select_index(inputs.back(), 1, static_cast<int64_t>(c));
      joint = joint + embedding(frequency_, ids + static_cast<int64_t>(first));
      first += static_cast<size_t>(options_.ids[c]);
    }
    if (classes() == outputs_) return joint;
    const Tensor pairs = reshape(joint, {batch, outputs_, 2});
    return select_index(pairs, 2, 1) - select_index(pairs, 2, 0);
  }

  std::unique_ptr<Fitting> fit(FitData data) override;

  void check() const override {
    const int64_t of = prior_.rank() == 1 ? classes() : 0;
    if ((of != outputs_ && of != 2 * outputs_) || mean_.shape() != Shape{of, options_.numbers} ||
        variance_.shape() != Shape{of, options_.numbers} || frequency_.shape() != Shape{ids_, of})
      fail<InputError>("the checkpoint's frequencies of naive Bayes are not those of this data");
  }

  /// Row by row: use(class among classes(), row, weight).
  template <typename Use>
  static void each_class(const FitData& data, Use&& use) {
    const bool labels = data.predicted == Predicted::labels;
    for (int64_t row = 0; row < data.training.count; ++row) {
      const double weight =
          data.training.weights.empty() ? 1 : data.training.weights[static_cast<size_t>(row)];
      if (!labels) {
        if (const int64_t label = data.training.targets.int_at(row); label >= 0) use(label, row, weight);
        continue;
      }
      for (int64_t k = 0; k < data.width; ++k)
        use(2 * k + (data.training.targets.at(row * data.width + k) > 0.5 ? 1 : 0), row, weight);
    }
  }
  void learn(const FitData& data);

 private:
  int64_t classes() const { return prior_.dim(0).size(); }
  void learn_numbers(const FitData& data, const std::vector<double>& weights);
  void learn_ids(const FitData& data, const std::vector<double>& weights);

  ModelOptions options_;
  int64_t outputs_;
  double smoothing_, variance_smoothing_;
  int64_t ids_;
  Tensor &prior_, &mean_, &variance_, &frequency_;
};

std::unique_ptr<Fitting> NaiveBayes::fit(FitData data) {
  if (data.predicted == Predicted::numbers)
    fail<InputError>(
        "model.kind = \"naive_bayes\" tells classes and labels, not numbers: boosting, nearest_neighbours "
        "and table do");
  return std::make_unique<OneRound<NaiveBayes>>(*this, std::move(data));
}

void NaiveBayes::learn(const FitData& data) {
  const int64_t of = data.predicted == Predicted::labels ? 2 * outputs_ : outputs_;
  std::vector<double> weights(static_cast<size_t>(of));
  double all = 0;
  each_class(data, [&](int64_t k, int64_t, double weight) {
    weights[static_cast<size_t>(k)] += weight;
    all += weight;
  });
  if (data.predicted == Predicted::labels) all /= static_cast<double>(outputs_);
  // Of a class without rows nothing is known but that it is rare: logits stay numbers.
  constexpr double rarest = 1e-30;
  Array prior(f32, {of});
  for (int64_t k = 0; k < of; ++k)
    prior.set(k, std::log(std::max(weights[static_cast<size_t>(k)] / all, rarest)));
  prior_ = Tensor(std::move(prior));
  learn_numbers(data, weights);
  learn_ids(data, weights);
}

void NaiveBayes::learn_numbers(const FitData& data, const std::vector<double>& weights) {
  const int64_t n = options_.numbers, of = static_cast<int64_t>(weights.size());
  Array means(f32, {of, n}), variances(f32, {of, n});
  if (n > 0) {
    const std::span<const float> x = std::as_const(data.training.inputs[0]).as<float>();
    const auto columns = static_cast<size_t>(n);
    std::vector<double> mean(weights.size() * columns), square(mean.size()), whole(columns), spread(columns);
    const auto rows = static_cast<double>(data.training.count);
    for (size_t i = 0; i < x.size(); ++i) whole[i % columns] += x[i] / rows;
    for (size_t i = 0; i < x.size(); ++i)
      spread[i % columns] += (x[i] - whole[i % columns]) * (x[i] - whole[i % columns]) / rows;
    each_class(data, [&](int64_t k, int64_t row, double weight) {
      for (size_t c = 0; c < columns; ++c)
        mean[static_cast<size_t>(k) * columns + c] +=
            weight * x[static_cast<size_t>(row) * columns + c] / weights[static_cast<size_t>(k)];
    });
    each_class(data, [&](int64_t k, int64_t row, double weight) {
      for (size_t c = 0; c < columns; ++c) {
        const size_t at = static_cast<size_t>(k) * columns + c;
        const double away = x[static_cast<size_t>(row) * columns + c] - mean[at];
        square[at] += weight * away * away / weights[static_cast<size_t>(k)];
      }
    });
    const double widest = *std::max_element(spread.begin(), spread.end());
    const double added = variance_smoothing_ * (widest > 0 ? widest : 1);
    for (size_t at = 0; at < mean.size(); ++at) {
      const bool known = weights[at / columns] > 0;
      means.set(static_cast<int64_t>(at), known ? mean[at] : whole[at % columns]);
      variances.set(static_cast<int64_t>(at), (known ? square[at] : spread[at % columns]) + added);
    }
  }
  mean_ = Tensor(std::move(means));
  variance_ = Tensor(std::move(variances));
}

void NaiveBayes::learn_ids(const FitData& data, const std::vector<double>& weights) {
  const size_t of = weights.size(), columns = options_.ids.size();
  std::vector<double> counts(static_cast<size_t>(ids_) * of);
  std::vector<size_t> first(columns);
  for (size_t c = 1; c < columns; ++c) first[c] = first[c - 1] + static_cast<size_t>(options_.ids[c - 1]);
  if (columns > 0)
    each_class(data, [&](int64_t k, int64_t row, double weight) {
      for (size_t c = 0; c < columns; ++c) {
        const int64_t id =
            data.training.inputs.back().int_at(row * static_cast<int64_t>(columns) + static_cast<int64_t>(c));
        counts[(first[c] + static_cast<size_t>(id)) * of + static_cast<size_t>(k)] += weight;
      }
    });
  Array frequency(f32, {ids_, static_cast<int64_t>(of)});
  for (size_t c = 0; c < columns; ++c)
    for (int64_t id = 0; id < options_.ids[c]; ++id)
      for (size_t k = 0; k < of; ++k) {
        const size_t at = (first[c] + static_cast<size_t>(id)) * of + k;
        frequency.set(static_cast<int64_t>(at),
                      std::log((counts[at] + smoothing_) /
                               (weights[k] + smoothing_ * static_cast<double>(options_.ids[c]))));
      }
  frequency_ = Tensor(std::move(frequency));
}

}  // namespace

MILLRACE_ARCHITECTURE(naive_bayes){
    .name = "naive_bayes",
    .doc =
        "naive Bayes: each number Gaussian in each class, each category by how often it is; fitted, not "
        "stepped",
    .takes = "table",
    .settings = {{"smoothing", "added to how often each category is in each class", 1.0, 1e-9, 1e9},
                 {"variance_smoothing",
                  "this share of the largest variance of all columns is added to each variance", 1e-9, 1e-15,
                  1.0}},
    .fitted = true,
    .make = table_model<NaiveBayes>,
};

}  // namespace millrace::nn::models
