#include <millrace/operator.h>

#include "passes/rules/rule.h"

namespace millrace {

std::span<const Rule> rules() {
  static constexpr Rule all[] = {
      {"reshape-of-reshape", true, reshape_of_reshape},
      {"broadcast-of-broadcast", true, broadcast_of_broadcast},
      {"transpose-of-transpose", true, transpose_of_transpose},
      {"no-op-cast", true, no_op_cast},
      {"widened-and-back", true, widened_and_back},
      {"slice-of-all", true, slice_of_all},
      {"pad-by-nothing", true, pad_by_nothing},
      {"concat-of-one", true, concat_of_one},
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

const Array* filled_with(const Graph& graph, Value value) {
  while (graph.node(value).op->name == "broadcast") value = graph.node(value).operands[0];
  const Array* constant = graph.constant_value(value);
  return constant && constant->count() == 1 ? constant : nullptr;
}

bool is_filled_with(const Graph& graph, Value value, double number) {
  const Array* constant = filled_with(graph, value);
  return constant && constant->at(0) == number;
}

}  // namespace millrace
