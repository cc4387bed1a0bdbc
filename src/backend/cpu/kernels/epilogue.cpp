#include "backend/cpu/kernels/epilogue.h"

#include "backend/cpu/kernels/vectors.h"
#include "ops/fused_conv2d.h"

namespace millrace::cpu {

std::span<const EpilogueMath* const> epilogue_maths() {
  static const auto maths = for_this_cpu(epilogue_math_avx512, epilogue_math_avx2, epilogue_math_baseline,
                                         epilogue_math_bf16_avx512);
  return maths;
}

Epilogue epilogue_of(const Node& node) {
  if (!ops::is_fused_convolution(node)) return {};
  const EpilogueMath& math = *epilogue_maths().front();
  return {true, node.operands.size() == 4, static_cast<float>(node.attributes.number("low")),
          static_cast<float>(node.attributes.number("high")),
          node.types[0].dtype == bf16 ? math.bf16 : math.f32};
}

}  // namespace millrace::cpu
