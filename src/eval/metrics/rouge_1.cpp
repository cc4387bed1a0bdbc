#include "eval/text_metric.h"

namespace millrace::eval {

MILLRACE_METRIC(rouge_1) =
    text_similarity("rouge-1", "ROUGE-1 of generated texts, 0 to 1: F1 of words, as rouge-score has it", 1,
                    Rouge::of_grams(1));

}  // namespace millrace::eval
