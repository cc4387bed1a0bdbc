#include "task/loss.h"

namespace millrace::task {

MILLRACE_LOSS(huber){
    .name = "huber",
    .doc = "half the squared error of errors up to delta, linear beyond it: outliers weigh less",
    .outputs = {"number"},
    .settings = {{"delta",
                  "where the parabola becomes a line; in standard deviations where the output standardises",
                  1.0, 1e-6, 1e6}},
    .make = [](const Tensor& logits, const Tensor& targets, const Settings& settings, bool mean) -> Tensor {
      const Tensor wide = cast(logits, f32);
      const double delta = settings.number("delta");
      if (mean) return ::millrace::huber_loss(wide, targets, delta);
      return apply("huber_loss", std::vector<Tensor>{wide, targets},
                   {{"delta", delta}, {"reduction", "none"}})[0]
          .mean({1});
    },
};

}  // namespace millrace::task
