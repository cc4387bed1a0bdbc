// Sums of many terms must not lose the small ones.
#include <cmath>

#include <millrace/operator.h>

#include "base/format.h"
#include "check/check.h"
#include "check/context.h"
#include "optim/model_scope.h"

namespace millrace::check {
namespace {

constexpr int64_t many_terms = 100'000'000;

/// 10⁸ ones in f32: a sum that goes on one by one stops at 2^24.
double sum_of_ones() {
  const Tensor ones = cast(iota(many_terms) >= 0, f32);
  return static_cast<double>(ones.sum().item());
}

/// A reduction of many numbers of 16 bits, by its place; "" where there is none.
std::string narrow_sum(const Graph& graph) {
  constexpr int64_t most_terms = 256;  // 2^8 ones are all that bf16 can count
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(i);
    if (node.body)
      if (std::string inner = narrow_sum(*node.body); !inner.empty()) return inner;
    if (!node.op->reduction || !(node.op->is(Reduction::sum) || node.op->is(Reduction::mean))) continue;
    const Type& from = graph.type(node.operands[0]);
    if (!from.dtype.is_float() || from.dtype.bytes() > 2) continue;
    const int64_t terms = from.shape.count() / std::max<int64_t>(1, node.types[0].shape.count());
    if (terms > most_terms)
      return fmt::format("{} adds {} numbers of {}{}", node.op->name, terms, from.dtype.name(),
                         node.origin.empty() ? "" : " in " + node.origin.place());
  }
  return {};
}

/// A loop that adds to a number for more steps than f32 keeps apart terms of like size.
std::string long_loop(const Graph& graph) {
  constexpr int64_t most_steps = 1 << 14;
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(i);
    if (node.op->op_class != OpClass::loop || node.types.empty()) continue;
    if (node.types[0].shape.count() > 1 || !node.types[0].dtype.is_float() || node.types[0].dtype.bytes() > 4)
      continue;
    for (const Value& operand : node.operands) {
      const Shape& shape = graph.type(operand).shape;
      if (shape.rank() > 0 && shape[0].size() > most_steps)
        return fmt::format("a loop of {} steps carries one number of {}", shape[0].size(),
                           node.types[0].dtype.name());
    }
  }
  return {};
}

/// Buffers of f32 or less that count steps: they stop at 2^24 (bf16: at 256).
std::vector<std::string> counters(Context& context) {
  (void)context.step();
  const auto buffers = context.model()->buffers();
  std::vector<std::vector<double>> seen(buffers.size());
  for (size_t step = 0; step < 4; ++step) {
    for (size_t i = 0; i < buffers.size(); ++i) {
      const Array array = optim::value_of(buffers[i]);
      if (array.count() == 1 && array.dtype().is_float()) seen[i].push_back(array.at(0));
    }
    context.train(context.batch(step), context.subject().lr);
  }
  std::vector<std::string> names;
  for (size_t i = 0; i < buffers.size(); ++i) {
    bool counts = seen[i].size() == 4;
    for (size_t k = 1; k < seen[i].size(); ++k) {
      const double by = seen[i][k] - seen[i][k - 1];
      counts = counts && by >= 1 && by == seen[i][1] - seen[i][0] && by == std::floor(by);
    }
    if (counts) names.push_back(buffers[i].name);
  }
  return names;
}

Finding run_sums(Context& context) {
  const Graph& graph = context.recorded().graph;
  if (const std::string found = narrow_sum(graph); !found.empty())
    return failed(found,
                  "cast to f32 before the sum: 16 bits lose terms that are 256 times smaller than the "
                  "sum (2048 times, f16)");
  if (const std::string found = long_loop(graph); !found.empty())
    return failed(found, "take sum() or mean(), which add in parts, or carry f64");
  if (const auto names = counters(context); !names.empty())
    return warned(fmt::format("{} counts in floating point", fmt::join(names, ", ")),
                  "count in i64: f32 stops at 16,777,216");
  const double sum = sum_of_ones();
  return with_numbers(
      sum == static_cast<double>(many_terms)
          ? passed("100,000,000 ones in f32 add up to 100,000,000; no sum of the loss is narrower")
          : failed(fmt::format("100,000,000 ones in f32 add up to {:.0f}", sum),
                   "this is a defect of Millrace on this machine: please report it"),
      {{"sum", sum}, {"terms", many_terms}});
}

}  // namespace

MILLRACE_CHECK_KIND(sums){
    .name = "sums",
    .doc = "sums that lose small terms: 10⁸ terms in f32, sums in 16 bits, counters in floating point",
    .matters =
        "a sum that is much larger than its terms no longer changes: means come out too small, and counts "
        "stop",
    .place = 360,
    .run = run_sums,
};

}  // namespace millrace::check
