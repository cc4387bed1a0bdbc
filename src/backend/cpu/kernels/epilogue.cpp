#include "backend/cpu/kernels/epilogue.h"

#include <vector>

#include "backend/cpu/kernels/vectors.h"
#include "ops/fused_conv2d.h"

namespace millrace::cpu {

std::span<const EpilogueMath* const> epilogue_maths() {
  static const std::vector<const EpilogueMath*> maths = [] {
    std::vector<const EpilogueMath*> list;
    if (has_avx512_bf16()) list.push_back(&epilogue_math_bf16_avx512());
    if (has_avx512()) list.push_back(&epilogue_math_avx512());
    if (has_avx2()) list.push_back(&epilogue_math_avx2());
    list.push_back(&epilogue_math_baseline());
    return list;
  }();
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
