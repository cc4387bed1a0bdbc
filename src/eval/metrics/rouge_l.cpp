#include "eval/text_metric.h"

namespace millrace::eval {

MILLRACE_METRIC(rouge_l) =
    text_similarity("rouge-l", "ROUGE-L of generated texts, 0 to 1: F1 of the longest common subsequence", 1,
                    Rouge::of_subsequences());

}  // namespace millrace::eval
