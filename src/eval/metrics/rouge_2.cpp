#include "eval/text_metric.h"

namespace millrace::eval {

MILLRACE_METRIC(rouge_2) = text_similarity("rouge-2",
                                           "ROUGE-2 of generated texts, 0 to 1: F1 of pairs of words", 1,
                                           Rouge::of_grams(2));

}  // namespace millrace::eval
