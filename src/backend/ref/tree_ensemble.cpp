#include "backend/ref/registry.h"
#include "ops/trees.h"

using namespace millrace;

MILLRACE_REF(tree_ensemble) {
  const Array &x = operands[0], &base = operands[6];
  const int64_t columns = x.shape()[1].size(), width = base.count();
  const ops::Trees trees =
      ops::trees_of(operands[1], operands[2], operands[3], operands[4], operands[5], columns);
  Array out(node.types[0]);
  const auto sums = out.as<float>();
  for (int64_t row = 0; row < x.shape()[0].size(); ++row) {
    float* const to = sums.data() + row * width;
    for (int64_t k = 0; k < width; ++k) to[k] = base.as<float>()[static_cast<size_t>(k)];
    for (int64_t t = 0; t < trees.trees; ++t)
      if (const int64_t leaf = trees.leaf(t, x.as<float>().data() + row * columns); leaf >= 0)
        to[t % width] += trees.threshold[leaf];
  }
  return {out};
}
