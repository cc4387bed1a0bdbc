#include "eval/text_metric.h"

namespace millrace::eval {

MILLRACE_METRIC(bleu) = text_similarity("bleu", "BLEU of generated texts, 0 to 100, as sacreBLEU has it", 100,
                                        Bleu());

}  // namespace millrace::eval
