// "weighted COLUMN": samples are drawn, with replacement, with a probability in proportion to a column.
#include "data/order/drawn.h"

namespace millrace::data {

MILLRACE_ORDER(weighted){.name = "weighted",
                         .doc = "drawn, with replacement, with a probability in proportion to a column",
                         .place = 70,
                         .settings = {column_setting()},
                         .by_column = true,
                         .make = drawn_order};

}  // namespace millrace::data
