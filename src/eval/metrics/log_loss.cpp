#include "eval/sums_of_rows.h"

namespace millrace::eval {

MILLRACE_METRIC(log_loss){
    .name = "log-loss",
    .doc = "mean of −log p(true class); of labels the mean over them of −log p(what each is)",
    .outputs = {"class", "classes", "tokens", "duel"},
    .lowest = 0,
    .init = [] { return mean_of_rows(log_loss_of); },
};

}  // namespace millrace::eval
