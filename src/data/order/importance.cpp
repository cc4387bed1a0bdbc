// "importance COLUMN": as "weighted", and the loss of each sample is weighted by the density ratio, so that
// it means the same.
#include "data/order/drawn.h"

namespace millrace::data {

MILLRACE_ORDER(importance){.name = "importance",
                           .doc = "as weighted, with a loss weighted so that it means the same as without",
                           .place = 80,
                           .settings = {column_setting()},
                           .by_column = true,
                           .weighs = true,
                           .make = drawn_order};

}  // namespace millrace::data
