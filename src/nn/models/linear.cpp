// A weight for each number and for each value of each category: linear and logistic regression.
#include "base/format.h"
#include "nn/models/architecture.h"
#include "nn/models/models.h"

namespace millrace::nn::models {
namespace {

/// Begins at 0, where nothing is known: how it is drawn would only cost a solver steps.
class LinearTable final : public Module {
 public:
  LinearTable(const ModelOptions& o, const Settings& /*settings*/) : numbers_(o.numbers) {
    if (numbers_ > 0) weight_ = &parameter("weight", {o.classes, numbers_}, init::constant(0));
    bias_ = &parameter("bias", {o.classes}, init::constant(0));
    for (size_t c = 0; c < o.ids.size(); ++c)
      tables_.push_back(
          &parameter(fmt::format("category{}.weight", c), {o.ids[c], o.classes}, init::constant(0)));
  }

  Tensor forward_many(std::span<const Tensor> inputs) override {
    check_table_inputs(inputs, numbers_ > 0, !tables_.empty());
    Tensor sum = numbers_ > 0 ? linear(inputs[0], *weight_, *bias_) : Tensor();
    for (size_t c = 0; c < tables_.size(); ++c) {
      const Tensor each = embedding(*tables_[c], select_index(inputs.back(), 1, static_cast<int64_t>(c)));
      sum = sum.defined() ? sum + each : each + *bias_;
    }
    return sum;
  }

 private:
  int64_t numbers_;
  Tensor *weight_ = nullptr, *bias_ = nullptr;
  std::vector<Tensor*> tables_;  // of each category a row a value: the weights of a one-hot code
};

}  // namespace

MILLRACE_ARCHITECTURE(linear_table){
    .name = "linear",
    .doc = "a weight for each number and each value of a category: linear and logistic regression",
    .takes = "table",
    .make = table_model<LinearTable>,
};

}  // namespace millrace::nn::models
