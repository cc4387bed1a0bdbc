#include "eval/text_metric.h"

namespace millrace::eval {

MILLRACE_METRIC(rouge_2){
    .name = "rouge-2",
    .doc = "ROUGE-2 of generated texts, 0 to 1: F1 of pairs of words",
    .outputs = {"tokens"},
    .higher_is_better = true,
    .lowest = 0,
    .highest = 1,
    .texts = true,
    .init = []() -> std::unique_ptr<Metric> { return text_metric(Rouge::of_grams(2)); },
};

}  // namespace millrace::eval
