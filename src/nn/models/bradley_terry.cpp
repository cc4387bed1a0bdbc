// One strength for each name: how likely one wins against another.
#include "base/format.h"
#include "nn/models/architecture.h"
#include "nn/models/models.h"

namespace millrace::nn::models {
namespace {

/// Two names → logits of who wins. Id 0 stands for all others together, ids 1 … `names` for names, and the
/// last one for a name that nothing is known of, which is as strong as they are in the mean.
class BradleyTerry final : public Module {
 public:
  explicit BradleyTerry(int64_t names) : strengths_(parameter("strengths", {names, 1}, init::constant(0))) {}

  Tensor forward(const Tensor& ids) override {
    // Only differences count: their mean is 0.
    const Tensor own = strengths_ - strengths_.mean();
    const Tensor nothing = Tensor::zeros({1, 1});
    const Tensor both = squeeze(embedding(concat(std::vector{nothing, own, nothing}, 0), ids), 2);
    const Tensor first = select_index(both, 1, 0), second = select_index(both, 1, 1);
    // All others at once are as strong as e^s of each together (Luce, 1959).
    constexpr double least = 1e-30;
    const Tensor top = max(own), all = log(exp(own - top).sum()) + top;
    const Tensor others = all + log(maximum(1 - exp(minimum(first - all, 0)), least));
    const Tensor against = where(equal(select_index(ids, 1, 1), 0), others, second);
    return concat(std::vector{unsqueeze(first, 1), unsqueeze(against, 1)}, 1);
  }

 private:
  Tensor& strengths_;
};

Model bradley_terry(const std::string& kind, const Settings& /*settings*/, const ModelOptions& options) {
  constexpr int64_t usual = 100;
  const int64_t ids = options.ids.empty() ? usual + 2 : options.ids[0];
  if (ids < 4) fail<InputError>("bradley_terry: duels are of two names or more, not of {}", ids - 2);
  return {kind,
          std::make_shared<BradleyTerry>(ids - 2),
          {{"names", batch_of({2}, i64), 0, static_cast<double>(ids)}},
          Task::classes};
}

}  // namespace

MILLRACE_ARCHITECTURE(bradley_terry){
    .name = "bradley_terry",
    .doc = "a strength for each name, by which one wins duels against another (Bradley and Terry, 1952)",
    .takes = "duel",
    .make = bradley_terry,
};

}  // namespace millrace::nn::models
