#include <millrace/operator.h>

#include "passes/rules/rule.h"

namespace millrace {

std::span<const Rule> rules() {
  static constexpr Rule all[] = {
      {"reshape-of-reshape", true, reshape_of_reshape},
      {"broadcast-of-broadcast", true, broadcast_of_broadcast},
      {"transpose-of-transpose", true, transpose_of_transpose},
      {"no-op", true, no_op},
      {"widened-and-back", true, widened_and_back},
      {"reduce-nothing", true, reduce_nothing},
      {"add-zero", true, add_zero},
      {"multiply-by-one", true, multiply_by_one},
      {"negative-of-negative", true, negative_of_negative},
      {"add-of-negative", true, add_of_negative},
      {"select-of-constant", true, select_of_constant},
      {"small-power", true, small_power},
      {"divide-by-power-of-two", true, divide_by_power_of_two},
      {"extreme-of-broadcast", true, extreme_of_broadcast},
      {"gather-of-cast", true, gather_of_cast},
      {"matmul-of-transpose", true, matmul_of_transpose},
      {"divide-by-constant", false, divide_by_constant},
      {"sum-of-broadcast", false, sum_of_broadcast},
      {"log-of-softmax", false, log_of_softmax},
      {"stable-log-sum-exp", false, stable_log_sum_exp},
  };
  return all;
}

}  // namespace millrace
