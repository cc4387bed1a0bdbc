#include "eval/text_metric.h"

namespace millrace::eval {

MILLRACE_METRIC(cer){
    .name = "cer",
    .doc =
        "character error rate of generated texts: characters put in, left out or changed, by those of the "
        "references",
    .outputs = {"tokens"},
    .lowest = 0,
    .texts = true,
    .init = []() -> std::unique_ptr<Metric> { return text_metric(ErrorRate::of_characters()); },
};

}  // namespace millrace::eval
