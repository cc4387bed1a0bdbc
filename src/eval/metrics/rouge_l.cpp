#include "eval/text_metric.h"

namespace millrace::eval {

MILLRACE_METRIC(rouge_l){
    .name = "rouge-l",
    .doc = "ROUGE-L of generated texts, 0 to 1: F1 of the longest common subsequence",
    .outputs = {"tokens"},
    .higher_is_better = true,
    .lowest = 0,
    .highest = 1,
    .texts = true,
    .init = []() -> std::unique_ptr<Metric> { return text_metric(Rouge::of_subsequences()); },
};

}  // namespace millrace::eval
