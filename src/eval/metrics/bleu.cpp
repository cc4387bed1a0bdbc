#include "eval/text_metric.h"

namespace millrace::eval {

MILLRACE_METRIC(bleu){
    .name = "bleu",
    .doc = "BLEU of generated texts, 0 to 100, as sacreBLEU has it",
    .outputs = {"tokens"},
    .higher_is_better = true,
    .lowest = 0,
    .highest = 100,
    .texts = true,
    .init = []() -> std::unique_ptr<Metric> { return text_metric(Bleu()); },
};

}  // namespace millrace::eval
