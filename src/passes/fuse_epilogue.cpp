#include <cmath>
#include <optional>

#include <millrace/operator.h>

#include "ops/build.h"
#include "ops/convolution.h"
#include "ops/fused_conv2d.h"
#include "passes/pass.h"
#include "passes/per_channel.h"

namespace millrace {
namespace {

/// What follows a convolution up to `end`, all of it read once.
struct Epilogue {
  int convolution;
  Value end;
  std::vector<std::pair<bool, Value>> terms;  // (subtracted, constant per channel)
  Value residual;
  double low = -INFINITY, high = INFINITY;
};

class EpilogueFusion {
 public:
  EpilogueFusion(const Graph& graph, const PassContext& context)
      : graph_(graph),
        target_(context.target),
        rewrite_(graph),
        uses_(graph.use_counts()),
        reader_(graph.size(), -1),
        taken_(graph.size(), 0),
        ends_(graph.size()) {
    for (int i = 0; i < graph.size(); ++i)
      for (const Value& operand : graph.node(i).operands) reader_[operand.node] = i;
    // Of two convolutions that are added the later one takes the sum, and the other is computed before it.
    for (int i = graph.size() - 1; i >= 0; --i)
      if (auto found = follow(i)) ends_[found->end.node] = std::move(found);
  }

  Graph run() {
    rewrite_.go_through([&](int i) { return ends_[i] && write(*ends_[i]); });
    return rewrite_.finish();
  }

 private:
  std::optional<Epilogue> follow(int i) {
    const Node& node = graph_.node(i);
    if (ops::convolution_part(node) != ops::ConvolutionPart::forward || ops::is_fused_convolution(node) ||
        node.types[0].dtype != f32 || !graph_.constant_value(node.operands[1]))
      return std::nullopt;
    Epilogue e{i, {i, 0}, {}, {}};
    std::vector<int> members;
    while (step(e, members)) {
    }
    if (e.end.node == i) return std::nullopt;
    for (const int member : members) taken_[member] = 1;
    return e;
  }

  /// The reader of `e.end` becomes its end, if it fits.
  bool step(Epilogue& e, std::vector<int>& members) {
    const int next = reader_[e.end.node];
    if (next < 0 || taken_[next] || limits(e)) return false;
    const Node& reader = graph_.node(next);
    if (reader.types[0] != graph_.type(e.end)) return false;
    const auto found = ops::limited(graph_, {next, 0});
    const bool ends = found && found->operand == e.end;
    if (uses_[e.end.node] != (ends ? found->reads : 1)) return false;
    if (ends) {
      e.low = found->low;
      e.high = found->high;
    } else if (!take_term(e, reader)) {
      return false;
    }
    e.end = {next, 0};
    members.push_back(next);
    return true;
  }

  /// What `reader` adds to `e.end` or subtracts from it.
  bool take_term(Epilogue& e, const Node& reader) const {
    const bool subtracts = reader.op->is(ScalarOp::sub);
    if (!subtracts && !reader.op->is(ScalarOp::add)) return false;
    const bool first = reader.operands[0] == e.end;
    const Value other = reader.operands[first ? 1 : 0];
    if (subtracts && !first) return false;
    if (is_per_channel(graph_, other)) {
      e.terms.emplace_back(subtracts, other);
      return true;
    }
    if (subtracts || e.residual.valid()) return false;
    e.residual = other;
    return true;
  }

  static bool limits(const Epilogue& e) { return std::isfinite(e.low) || std::isfinite(e.high); }

  /// The one node in place of all; false where no provider takes it.
  bool write(const Epilogue& e) {
    const Node& conv = graph_.node(e.convolution);
    Graph& to = rewrite_.graph();
    ops::Build build(to);
    to.set_origin(conv.origin);
    Value bias;
    for (const auto& [subtracted, term] : e.terms) {
      const Value part = *per_channel(to, rewrite_[term]), own = subtracted ? build.neg(part) : part;
      bias = bias.valid() ? build.add(bias, own) : own;
    }
    const Dim channels = conv.types[0].shape[1];
    if (!bias.valid()) bias = build.broadcast(build.scalar(f32, 0), Shape{channels});
    std::vector<Value> operands = rewrite_.mapped(conv.operands);
    if (e.residual.valid()) operands.push_back(rewrite_[e.residual]);
    operands.push_back(bias);
    Attributes attributes = ops::convolution_attributes_of(conv);
    attributes.set("low", e.low);
    attributes.set("high", e.high);
    const Value fused = to.add("fused_conv2d", operands, attributes);
    if (!target_.taker(to, to.node(fused))) return false;
    rewrite_.set(e.end, fused);
    return true;
  }

  const Graph& graph_;
  const Target& target_;
  Rewriter rewrite_;
  std::vector<int> uses_, reader_;
  std::vector<char> taken_;
  std::vector<std::optional<Epilogue>> ends_;  // by their last node
};

}  // namespace

// conv2d with constant weights, then constants per channel, another value and limits: one node, whose kernels
// do the rest before they store a result.
static Graph fuse_epilogue(const Graph& graph, const PassContext& context) {
  if (context.precision == "fp16") return graph;  // rounds what convolutions give by themselves
  return eliminate_dead(EpilogueFusion(graph, context).run(), context);
}

MILLRACE_PASS(fuse_epilogue){
    .name = "fuse-epilogue",
    .doc = "bias, residual sum and limits behind a convolution of constant weights become part of it",
    .place = 75,
    .run = fuse_epilogue};

}  // namespace millrace
