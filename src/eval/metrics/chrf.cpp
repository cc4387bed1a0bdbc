#include "eval/text_metric.h"

namespace millrace::eval {

MILLRACE_METRIC(chrf) = text_similarity(
    "chrf", "chrF of generated texts, 0 to 100: n-grams of characters, as sacreBLEU has it", 100, Chrf());

}  // namespace millrace::eval
