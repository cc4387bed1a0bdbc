#include "eval/text_metric.h"

namespace millrace::eval {

MILLRACE_METRIC(chrf){
    .name = "chrf",
    .doc = "chrF of generated texts, 0 to 100: n-grams of characters, as sacreBLEU has it",
    .outputs = {"tokens"},
    .higher_is_better = true,
    .lowest = 0,
    .highest = 100,
    .texts = true,
    .init = []() -> std::unique_ptr<Metric> { return text_metric(Chrf()); },
};

}  // namespace millrace::eval
