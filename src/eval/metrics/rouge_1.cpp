#include "eval/text_metric.h"

namespace millrace::eval {

MILLRACE_METRIC(rouge_1){
    .name = "rouge-1",
    .doc = "ROUGE-1 of generated texts, 0 to 1: F1 of words, as rouge-score has it",
    .outputs = {"tokens"},
    .higher_is_better = true,
    .lowest = 0,
    .highest = 1,
    .texts = true,
    .init = []() -> std::unique_ptr<Metric> { return text_metric(Rouge::of_grams(1)); },
};

}  // namespace millrace::eval
