// What attention, self_attention and their gradients share.
#pragma once

#include <vector>

#include <millrace/operator.h>

#include "ops/build.h"

namespace millrace::ops {

/// attention, self_attention (packed: q, k and v are one operand) or the gradient of one.
struct AttentionForm {
  bool packed, backward;
};
/// nullopt for any other operator.
std::optional<AttentionForm> attention_form(const Node& node);

/// `causal` and `scale`.
std::vector<AttributeSpec> attention_attributes();

/// Checks q [batch, heads, queries, width], k, v and a mask, which is the last operand if it is there.
void check_attention(const TypeContext& context, const Type& q, const Type& k, const Type& v, size_t mask_at);
/// The same of operand 0, in which q, k and v are packed.
void check_packed_attention(const TypeContext& context, size_t mask_at);
/// Checks that operand `index` has this type; `what` names it.
void check_operand(const TypeContext& context, int index, std::string_view what, const Type& expected);

/// The factor of the scores: the attribute, or 1 / sqrt(width).
double attention_scale(const Attributes& attributes, int64_t width);
/// Whether a query may see no key: its result is zeros then.
bool may_see_nothing(const Shape& q, const Shape& k, bool masked, const Attributes& attributes);

/// scale · q·kᵀ + mask, −∞ where a key is hidden, in wide(dtype): [batch, heads, queries, keys]. `mask` may
/// be invalid.
Value attention_scores(Build& b, Value q, Value k, Value mask, const Attributes& attributes);

/// The operands of attention_grad; `mask` may be invalid.
struct AttentionGradOperands {
  Value q, k, v, gradient, log_sum, inner, mask;
};
/// The softmax, and the gradient of the scores after scale and mask, both [batch, heads, queries, keys] in
/// wide(dtype).
struct ScoreGradient {
  Value weights, scores;
};
ScoreGradient score_gradient(Build& b, const AttentionGradOperands& o, const Attributes& attributes);

/// The part of attention's gradient that does not depend on the keys: sum(result · its gradient) over the
/// width minus the log-sum-exp's gradient (which may be invalid), in wide(dtype).
Value attention_inner(Build& b, Value result, Value gradient, Value log_sum_gradient);

/// The gradient of a float mask; needs memory for all scores.
Value mask_gradient(Build& b, const AttentionGradOperands& o, const Attributes& attributes);

/// q, k and v of a packed [batch, length, heads + 2 · shared heads, width], as attention takes them.
struct Unpacked {
  Value q, k, v;
};
Unpacked unpack_heads(Build& b, Value packed, int64_t heads);
/// [batch, length, heads, width] ↔ [batch, heads, length, width].
Value swap_heads(Build& b, Value x);

}  // namespace millrace::ops
