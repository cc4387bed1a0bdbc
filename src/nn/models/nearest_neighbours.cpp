// The nearest neighbours: all samples are kept, and one is told by those that are nearest to it, by the
// standardised numbers and one column for each category.

#include "base/format.h"
#include "base/memory_nodes.h"
#include "nn/models/architecture.h"
#include "nn/models/fitted.h"

namespace millrace::nn::models {
namespace {

class NearestNeighbours final : public Fitted {
 public:
  NearestNeighbours(ModelOptions options, const Settings& settings)
      : options_(std::move(options)),
        neighbours_(settings.integer("neighbours")),
        by_distance_(settings.text("weights") == "distance"),
        rows_(buffer("rows", Array(f32, {1, table_width(options_)}))),
        targets_(buffer("targets", Array(f32, {1, options_.classes}))),
        weights_(buffer("weights", Array::full(f32, {1}, 1))),
        kind_(buffer("predicted", Array(i64, {}))) {}

  Tensor forward_many(std::span<const Tensor> inputs) override {
    const Tensor x = table_columns(inputs, options_);
    const int64_t k = std::min(neighbours_, rows_.dim(0).size());
    // Nearest is where 2·x·r − r² is largest: x² is the same for all.
    const Tensor near = 2 * matmul(x, rows_, false, true) - unsqueeze((rows_ * rows_).sum({1}), 0);
    const Tensor found = apply("top_k", {&near, 1}, {{"k", k}})[1];
    Tensor weights = embedding(unsqueeze(weights_, 1), found);  // [batch, k, 1]
    if (by_distance_) {
      // From the rows themselves: the form above loses what nearly equal rows differ by.
      const Tensor away = embedding(rows_, found) - unsqueeze(x, 1);
      constexpr double nothing = 1e-12;
      weights = weights / maximum(sqrt((away * away).sum({2}, true)), nothing);
    }
    const Tensor share = (embedding(targets_, found) * weights).sum({1}) / weights.sum({1});
    return logits(share);
  }

  std::unique_ptr<Fitting> fit(FitData data) override;

  void check() const override {
    const Dim count = rows_.rank() == 2 ? rows_.dim(0) : Dim(0);
    if (count == Dim(0) || rows_.shape() != Shape{count, table_width(options_)} ||
        targets_.shape() != Shape{count, options_.classes} || weights_.shape() != Shape{count})
      fail<InputError>("the checkpoint's rows of nearest neighbours are not those of this data");
  }

  void learn(const FitData& data) {
    const int64_t count = data.training.count, width = table_width(options_);
    std::vector<Tensor> inputs;
    for (const Array& each : data.training.inputs) inputs.emplace_back(each);
    const Tensor rows = reshape(table_columns(inputs, options_), {count, width}),
                 targets(data.training.targets);
    const Tensor told = data.predicted == Predicted::classes
                            ? one_hot(targets, options_.classes)
                            : reshape(targets.cast(f32), {count, options_.classes});
    // Rows that count nothing must not stand in the place of a neighbour that counts.
    const auto& weights = data.training.weights;
    std::vector<double> counting;
    for (int64_t i = 0; i < count; ++i)
      if (weights.empty() || weights[static_cast<size_t>(i)] > 0) counting.push_back(static_cast<double>(i));
    if (counting.empty()) fail<InputError>("all samples to train on have the weight 0");
    const Tensor which(Array::of(i64, {std::ssize(counting)}, counting));
    rows_ = Tensor(embedding(rows, which).to_array());
    targets_ = Tensor(embedding(told, which).to_array());
    Array own = Array::full(f32, {std::ssize(counting)}, 1);
    for (size_t i = 0; !weights.empty() && i < counting.size(); ++i)
      own.set(static_cast<int64_t>(i), weights[static_cast<size_t>(counting[i])]);
    weights_ = Tensor(std::move(own));
    kind_ = Tensor(Array::scalar(i64, static_cast<double>(data.predicted)));
  }

 private:
  /// Shares of neighbours as logits of the same probabilities; none is as sure as to be infinite.
  Tensor logits(const Tensor& share) const {
    constexpr double least = 1e-6;
    const Tensor kind = broadcast_to(reshape(kind_, {1, 1}), share.shape());
    const Tensor rest = maximum(1 - share, least), held = log(maximum(share, least));
    return where(equal(kind, static_cast<int>(Predicted::numbers)), share,
                 where(equal(kind, static_cast<int>(Predicted::labels)), held - log(rest), held));
  }

  ModelOptions options_;
  int64_t neighbours_;
  bool by_distance_;
  Tensor &rows_, &targets_, &weights_, &kind_;
};

std::unique_ptr<Fitting> NearestNeighbours::fit(FitData data) {
  const double bytes = 4.0 * static_cast<double>(data.training.count) *
                       static_cast<double>(table_width(options_) + options_.classes);
  if (bytes > 0.5 * static_cast<double>(machine_memory()))
    fail<InputError>(
        "nearest neighbours keep all {} rows, of {} columns with one for each category: {:.3g} GB, which is "
        "too "
        "much for this machine; leave columns of many categories out (input.leave_out), or take fewer rows",
        data.training.count, table_width(options_), bytes / 1e9);
  return std::make_unique<OneRound<NearestNeighbours>>(*this, std::move(data));
}

}  // namespace

MILLRACE_ARCHITECTURE(nearest_neighbours){
    .name = "nearest_neighbours",
    .doc = "the samples to train on that are nearest: all are kept and compared with; fitted, not stepped",
    .takes = "table",
    .settings = {{"neighbours", "how many tell a sample", int64_t{5}, 1, 10000},
                 {"weights",
                  "how much each counts: alike, or by 1 / its distance",
                  std::string("uniform"),
                  -1e18,
                  1e18,
                  {"uniform", "distance"}}},
    .fitted = true,
    .make = table_model<NearestNeighbours>,
};

}  // namespace millrace::nn::models
