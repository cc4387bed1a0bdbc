#include <cmath>

#include "ops/elementwise.h"
#include "ops/random.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(random_bernoulli) {
  Operator op = ops::random_operator("random_bernoulli",
                                     "1 with probability p, else 0; the key is (seed, step).", boolean, {});
  const AttributeSpec p("p", AttributeType::number, "the probability, used in steps of 2^-32",
                        {.low = 0, .high = 1});
  op.attributes.push_back(p);
  op.element = [](ElementBuilder& b, std::span<const Scalar> index, const ElementContext& c) {
    // In whole numbers, so that every back end draws the same.
    const auto limit = static_cast<int64_t>(std::llround(std::ldexp(c.node.attributes.number("p"), 32)));
    const Scalar word = b.cast(ops::random_words(b, ops::flat_index(b, index, c), c)[0], i64);
    return b.cast(b.less(word, b.integer(i64, limit)), c.node.types[0].dtype);
  };
  for (const DType dtype : ops::computed_dtypes())
    op.samples.push_back(ops::random_sample({5, 33}, {{"p", 0.3}, {"dtype", dtype}}));
  for (const double sure : {0.0, 1.0}) op.samples.push_back(ops::random_sample({65}, {{"p", sure}}));
  for (const Shape& shape : {Shape{}, Shape{0, 3}, Shape{1}, Shape{2, 3, 7}})
    op.samples.push_back(ops::random_sample(shape, {{"p", 0.5}, {"stream", int64_t{7}}}));
  return op;
}
