#include "optim/rounding.h"

#include <vector>

#include <millrace/operator.h>

#include "ops/build.h"
#include "passes/loops.h"

namespace millrace::optim {
namespace {

/// Whether it sums products: what precision decides about.
bool multiplies(const Node& node) {
  if (!node.types[0].dtype.is_float()) return false;
  if (node.op->op_class == OpClass::heavy) return true;
  if (node.op->op_class != OpClass::composite || !node.body) return false;
  for (int i = 0; i < node.body->size(); ++i)
    if (multiplies(node.body->node(i))) return true;
  return false;
}

bool adds(const Node& node) {
  return node.op->reduction == Reduction::sum || node.op->reduction == Reduction::mean;
}

/// Adds errors to values of one graph.
class Disturber {
 public:
  Disturber(const Graph& graph, const Rounding& rounding, int64_t number, bool opposite)
      : graph_(graph), rounding_(rounding), rewrite_(graph), b_(rewrite_.graph()), sign_(opposite ? -1 : 1) {
    rewrite_.copy_inputs();
    const std::vector<double> seed{static_cast<double>(kSeed + number), 0};  // not one that a step has
    key_ = b_.graph().constant(Array::of(i64, {2}, seed));
  }

  Graph run() {
    for (int i = 0; i < graph_.size(); ++i) {
      if (rewrite_.has({i, 0})) continue;
      const Node& node = graph_.node(i);
      const bool computes = node.origin.phase != Phase::update;
      if (computes && adds(node) && takes(node.operands[0])) {
        reduce(i);
        continue;
      }
      rewrite_.copy(i);
      // Of an update only products (Muon's): the rows that it moves are moved exactly.
      if (!multiplies(node) || !(computes || arithmetic_of(*node.op) == Arithmetic::narrow)) continue;
      for (size_t r = 0; r < node.types.size(); ++r)
        if (const Value result{i, static_cast<int32_t>(r)}; takes(result))
          rewrite_.set(result,
                       result_off(rewrite_[result], node.attributes.find("strides") ? rounding_.convolutions
                                                                                    : rounding_.products));
    }
    return rewrite_.finish();
  }

 private:
  static constexpr int64_t kSeed = int64_t{1} << 52;

  bool takes(Value value) const {
    return graph_.type(value).dtype.is_float() && graph_.type(value).shape.count() > 0;
  }

  Value off(Value exact, Value by) {  // ± by
    const Shape shape = b_.shape(exact);
    const Value up =
        b_.graph().add("random_bernoulli", {key_}, {{"shape", shape}, {"stream", stream_++}, {"p", 0.5}});
    return b_.add(exact, b_.select(up, by, b_.neg(by)));
  }

  Value result_off(Value exact, double part) {
    const DType dtype = b_.dtype(exact);
    const Value wide = b_.widen(exact), zero = b_.binary("equal", wide, b_.zeros(wide));
    const Value largest = b_.mul(b_.max(b_.unary("abs", wide), {}, false), sign_ * part);
    return b_.cast(b_.select(zero, wide, off(wide, b_.broadcast(largest, b_.shape(wide)))), dtype);
  }

  /// A reduction of numbers that are each off.
  void reduce(int i) {
    const Node& node = graph_.node(i);
    b_.graph().set_origin(node.origin);
    const Value exact = rewrite_[node.operands[0]], wide = b_.widen(exact);
    const Value moved = b_.cast(off(wide, b_.mul(wide, sign_ * rounding_.elements)), b_.dtype(exact));
    rewrite_.set({i, 0}, b_.graph().add(*node.op, {moved}, node.attributes));
  }

  const Graph& graph_;
  const Rounding& rounding_;
  Rewriter rewrite_;
  ops::Build b_;
  Value key_;
  double sign_;
  int64_t stream_ = 0;
};

}  // namespace

Graph disturbed(const Graph& graph, const Rounding& rounding, int64_t number, bool opposite) {
  const auto change = [&](const Graph& part) { return Disturber(part, rounding, number, opposite).run(); };
  return change(with_bodies(graph, change));
}

}  // namespace millrace::optim
