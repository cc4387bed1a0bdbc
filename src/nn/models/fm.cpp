// A factorisation machine: a weight for each number and each value of a category, and for each two of them
// the product of their vectors (Rendle, 2010). The sum over all pairs is computed in as many steps as there
// are columns: half the square of the sum of all vectors less the sum of their squares.
#include <algorithm>

#include "base/format.h"
#include "nn/models/architecture.h"
#include "nn/models/models.h"

namespace millrace::nn::models {
namespace {

/// Weights begin at 0 and vectors near it, as libFM has them.
Initialiser weights_and_vectors(int64_t weights, double deviation) {
  return [=, draw = init::normal(0, deviation)](Array& array, uint64_t seed, const std::string& name) {
    draw(array, seed, name);
    const int64_t width = array.shape()[1].size();
    const std::span<float> values = array.as<float>();
    for (size_t row = 0; row < values.size(); row += static_cast<size_t>(width))
      std::fill_n(values.begin() + static_cast<std::ptrdiff_t>(row), weights, 0.0f);
  };
}

/// A row of each table is the weight of each output, then each output's vector.
class FactorisationMachine final : public Module {
 public:
  FactorisationMachine(const ModelOptions& o, const Settings& settings)
      : numbers_(o.numbers), outputs_(o.classes), factors_(settings.integer("factors")) {
    const int64_t width = outputs_ * (1 + factors_);
    const Initialiser draw = weights_and_vectors(outputs_, settings.number("deviation"));
    bias_ = &parameter("bias", {outputs_}, init::constant(0));
    if (numbers_ > 0) of_numbers_ = &parameter("numbers.weight", {numbers_, width}, draw);
    for (size_t c = 0; c < o.ids.size(); ++c)
      tables_.push_back(&parameter(fmt::format("category{}.weight", c), {o.ids[c], width}, draw));
  }

  Tensor forward_many(std::span<const Tensor> inputs) override {
    check_table_inputs(inputs, numbers_ > 0, !tables_.empty());
    const int64_t width = outputs_ * (1 + factors_);
    const auto vectors_of = [&](const Tensor& rows) { return slice(rows, 1, outputs_, width); };
    Tensor sum, squares;
    const auto add = [](Tensor& to, const Tensor& more) { to = to.defined() ? to + more : more; };
    if (numbers_ > 0) {
      const Tensor vectors = vectors_of(*of_numbers_);
      add(sum, matmul(inputs[0], *of_numbers_));
      add(squares, matmul(inputs[0] * inputs[0], vectors * vectors));
    }
    for (size_t c = 0; c < tables_.size(); ++c) {
      const Tensor rows = embedding(*tables_[c], select_index(inputs.back(), 1, static_cast<int64_t>(c)));
      const Tensor vectors = vectors_of(rows);
      add(sum, rows);
      add(squares, vectors * vectors);
    }
    const Tensor all = vectors_of(sum);
    const Tensor pairs = reshape(all * all - squares, {sum.dim(0), outputs_, factors_}).sum({2}) * 0.5;
    return slice(sum, 1, 0, outputs_) + *bias_ + pairs;
  }

 private:
  int64_t numbers_, outputs_, factors_;
  Tensor *bias_ = nullptr, *of_numbers_ = nullptr;
  std::vector<Tensor*> tables_;
};

}  // namespace

MILLRACE_ARCHITECTURE(fm){
    .name = "fm",
    .doc = "a factorisation machine: weights, and products of vectors for all pairs of columns",
    .takes = "table",
    .settings = {{"factors", "of the vectors", int64_t{8}, 1, 1 << 12},
                 {"deviation", "that the vectors are drawn with", 0.01, 0, 10}},
    .make = table_model<FactorisationMachine>,
};

}  // namespace millrace::nn::models
