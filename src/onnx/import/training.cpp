#include "onnx/import/call.h"

using namespace millrace;
using onnx::Items;

// Optimisers of ai.onnx.preview.training: of each of several tensors the next value and state.
namespace {

/// The rate, the step count (from 0), then `kinds` groups of as many tensors each. `next` gives new groups
/// but for that of the gradients.
template <typename Next>
Items each(onnx::ImportCall& call, int kinds, const Next& next) {
  const int many = (call.count() - 2) / kinds;
  if (many < 1 || call.count() != 2 + many * kinds) call.refuse("its tensors are not in groups");
  std::vector<std::vector<Value>> results;
  for (int i = 0; i < many; ++i) {
    std::vector<Value> own;
    for (int kind = 0; kind < kinds; ++kind) own.push_back(call[2 + kind * many + i]);
    const double decay = call.number("norm_coefficient", 0);
    own[1] = call.b.add(own[1], call.b.mul(own[0], decay));  // the gradient
    results.push_back(next(own));
  }
  Items all;
  for (size_t kind = 0; kind < results[0].size(); ++kind)
    for (const std::vector<Value>& one : results) all.emplace_back(one[kind]);
  return all;
}

Value square(onnx::ImportCall& call, Value x) { return call.b.mul(x, x); }

/// 1 where no step was made yet.
Value at_first(onnx::ImportCall& call, double otherwise, DType dtype) {
  const Value count = call[1];
  return call.b.select(call.compare("equal", count, 0),
                       call.b.broadcast(call.scalar(dtype, 1), call.b.shape(count)),
                       call.b.broadcast(call.scalar(dtype, otherwise), call.b.shape(count)));
}

}  // namespace

MILLRACE_ONNX_IMPORT(ai_onnx_preview_training_Momentum) {
  const double alpha = call.number("alpha"), beta = call.number("beta");
  const bool nesterov = call.text("mode") == "nesterov";
  return each(call, 3, [&](const std::vector<Value>& x) {
    const Value factor = at_first(call, beta, call.b.dtype(x[1]));
    const Value v = call.b.add(call.b.mul(x[2], alpha), call.b.mul(x[1], factor));
    const Value step = nesterov ? call.b.add(x[1], call.b.mul(v, alpha)) : v;
    return std::vector<Value>{call.b.sub(x[0], call.b.mul(step, call[0])), v};
  });
}

MILLRACE_ONNX_IMPORT(ai_onnx_preview_training_Adagrad) {
  const double decay = call.number("decay_factor", 0), epsilon = call.number("epsilon", 1e-6);
  return each(call, 3, [&](const std::vector<Value>& x) {
    const DType dtype = call.b.dtype(x[0]);
    const Value rate = call.b.div(call[0], call.b.add(call.b.mul(call.b.cast(call[1], dtype), decay), 1));
    const Value h = call.b.add(x[2], square(call, x[1]));
    const Value adapted = call.b.add(call.graph.add("sqrt", {h}), epsilon);
    return std::vector<Value>{call.b.sub(x[0], call.b.mul(call.b.div(x[1], adapted), rate)), h};
  });
}

MILLRACE_ONNX_IMPORT(ai_onnx_preview_training_Adam) {
  const double alpha = call.number("alpha", 0.9), beta = call.number("beta", 0.999),
               epsilon = call.number("epsilon", 1e-6), after = call.number("norm_coefficient_post", 0);
  return each(call, 4, [&](const std::vector<Value>& x) {
    const DType dtype = call.b.dtype(x[0]);
    const Value v = call.b.add(call.b.mul(x[2], alpha), call.b.mul(x[1], 1 - alpha));
    const Value h = call.b.add(call.b.mul(x[3], beta), call.b.mul(square(call, x[1]), 1 - beta));
    const Value root = call.b.add(call.graph.add("sqrt", {h}), epsilon);
    const Value count = call.b.cast(call[1], dtype);
    const auto without = [&](double factor) {
      return call.b.sub(call.fill(count, 1), call.b.binary("pow", call.fill(count, factor), count));
    };
    const Value corrected =
        call.b.div(call.b.mul(call[0], call.graph.add("sqrt", {without(beta)})), without(alpha));
    const Value rate = call.b.select(call.compare("greater", count, 0), corrected,
                                     call.b.broadcast(call[0], call.b.shape(count)));
    const Value next = call.b.sub(x[0], call.b.mul(call.b.div(v, root), rate));
    return std::vector<Value>{call.b.mul(next, 1 - after), v, h};
  });
}
