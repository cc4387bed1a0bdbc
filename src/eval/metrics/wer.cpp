#include "eval/text_metric.h"

namespace millrace::eval {

MILLRACE_METRIC(wer){
    .name = "wer",
    .doc =
        "word error rate of generated texts: words put in, left out or changed, by those of the references",
    .outputs = {"tokens"},
    .lowest = 0,
    .texts = true,
    .init = []() -> std::unique_ptr<Metric> { return text_metric(ErrorRate::of_words()); },
};

}  // namespace millrace::eval
