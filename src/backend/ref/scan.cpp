#include "ops/scan.h"

#include <algorithm>
#include <cstring>

#include "backend/ref/evaluate.h"
#include "backend/ref/registry.h"
#include "ops/cond.h"

using namespace millrace;

namespace {

std::vector<Array> run_loop(const Node& node, std::span<const Array> operands) {
  const ops::Scan s = ops::scan_of(node);
  const int64_t length = s.length.size();
  std::vector<Array> carries(operands.begin(), operands.begin() + s.carries), stacks;
  for (int k = 0; k < s.outputs; ++k) stacks.emplace_back(node.types[s.carries + k]);
  for (int64_t step = 0; step < length; ++step) {
    if (s.conditional && carries[0].at(0) == 0) break;
    const int64_t at = s.reverse ? length - 1 - step : step;
    std::vector<Array> inputs = carries;
    for (int k = 0; k < s.sequences; ++k) {
      Array slice(node.body->type(node.body->inputs()[s.carries + k]));
      const auto* from = static_cast<const char*>(operands[s.carries + k].data());
      if (slice.bytes() > 0)
        std::memcpy(slice.data(), from + at * slice.bytes(), static_cast<size_t>(slice.bytes()));
      inputs.push_back(slice);
    }
    inputs.insert(inputs.end(), operands.begin() + s.carries + s.sequences, operands.end());
    const std::vector<Array> results = ref::evaluate(*node.body, inputs);
    std::copy_n(results.begin(), s.carries, carries.begin());
    for (int k = 0; k < s.outputs; ++k) {
      const Array& slice = results[s.carries + k];
      if (slice.bytes() > 0)
        std::memcpy(static_cast<char*>(stacks[k].data()) + at * slice.bytes(), slice.data(),
                    static_cast<size_t>(slice.bytes()));
    }
  }
  carries.insert(carries.end(), stacks.begin(), stacks.end());
  return carries;
}

}  // namespace

MILLRACE_REF(scan) { return run_loop(node, operands); }
MILLRACE_REF(while_loop) { return run_loop(node, operands); }
MILLRACE_REF(cond) {
  const Graph branch = ops::branch_of(*node.body, operands[0].at(0) != 0);
  return ref::evaluate(branch, operands.subspan(1));
}
