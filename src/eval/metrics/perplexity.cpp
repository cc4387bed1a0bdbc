#include <cmath>

#include "eval/sums_of_rows.h"

namespace millrace::eval {

MILLRACE_METRIC(perplexity){
    .name = "perplexity",
    .doc = "exp(log-loss)",
    .outputs = {"class", "tokens"},
    .lowest = 1,
    .init = [] { return mean_of_rows(log_loss_of, [](double mean) { return std::exp(mean); }); },
};

}  // namespace millrace::eval
