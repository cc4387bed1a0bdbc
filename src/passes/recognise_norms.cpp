#include <optional>

#include <millrace/operator.h>

#include "ops/build.h"
#include "ops/norm_form.h"
#include "passes/pass.h"

namespace millrace {
namespace {

class NormFinder {
 public:
  explicit NormFinder(const Graph& graph) : graph_(graph), rewrite_(graph), to_(rewrite_.graph()) {}

  Graph run() {
    rewrite_.go_through([&](int i) { return write(i); });
    return rewrite_.finish();
  }

 private:
  /// One number for each place of the last axis, the same everywhere else.
  std::optional<Value> along_last(Value v, const Type& like) const {
    while (graph_.node(v).op->broadcasts) v = graph_.node(v).operands[0];
    const auto& [dtype, shape] = graph_.type(v);
    const bool fits =
        shape.rank() > 0 && shape.back() == like.shape.back() && shape.elements() == like.shape.back();
    return fits && dtype == like.dtype ? std::optional(v) : std::nullopt;
  }

  /// Where a norm with weight and bias ends at node i, the operator instead.
  bool write(int i) {
    const Node& end = graph_.node(i);
    if (!end.op->is(ScalarOp::add) || !end.types[0].dtype.is_float()) return false;
    for (int side = 0; side < 2; ++side) {
      const auto bias = along_last(end.operands[1 - side], end.types[0]);
      const Node& product = graph_.node(end.operands[side]);
      if (!bias || !product.op->is(ScalarOp::mul)) continue;
      for (int factor = 0; factor < 2; ++factor) {
        const auto weight = along_last(product.operands[1 - factor], end.types[0]);
        const auto norm = weight ? ops::centred_norm(graph_, product.operands[factor]) : std::nullopt;
        if (!norm) continue;
        ops::Build b(to_);
        to_.set_location(end.location);
        const Shape last{end.types[0].shape.back()};
        const Value made =
            to_.add("layer_norm",
                    {rewrite_[norm->x], b.reshape(rewrite_[*weight], last), b.reshape(rewrite_[*bias], last)},
                    {{"axis", int64_t{-1}}, {"eps", norm->eps}});
        rewrite_.set({i, 0}, made);
        return true;
      }
    }
    return false;
  }

  const Graph& graph_;
  Rewriter rewrite_;
  Graph& to_;
};

}  // namespace

// Layer norms that were written as means, squares and roots (as exporters of other programs do) become the
// operator, which reads each row once.
static Graph recognise_norms(const Graph& graph, const PassContext& context) {
  return eliminate_dead(NormFinder(graph).run(), context);
}

MILLRACE_PASS(recognise_norms){.name = "recognise-norms",
                               .doc = "means, squares and roots that are a layer norm become that operator",
                               .place = 26,
                               .run = recognise_norms};

}  // namespace millrace
