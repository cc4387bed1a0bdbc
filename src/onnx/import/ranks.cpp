#include "onnx/import/ranks.h"

#include <map>
#include <string_view>

#include "base/format.h"

namespace millrace::onnx {
namespace {

/// Of the inputs in their order; 0: any.
const std::map<std::string_view, std::vector<int>>& least_ranks() {
  static const std::map<std::string_view, std::vector<int>> known = {{"Attention", {3, 3, 3, 1, 4, 4}},
                                                                     {"AveragePool", {3}},
                                                                     {"BatchNormalization", {1, 1, 1, 1, 1}},
                                                                     {"CenterCropPad", {1}},
                                                                     {"Concat", {1}},
                                                                     {"Conv", {3, 3, 1}},
                                                                     {"ConvInteger", {3, 3}},
                                                                     {"ConvTranspose", {3, 3, 1}},
                                                                     {"CumProd", {1}},
                                                                     {"CumSum", {1}},
                                                                     {"DepthToSpace", {4}},
                                                                     {"Det", {2}},
                                                                     {"DeformConv", {4, 4, 4, 1, 4}},
                                                                     {"EyeLike", {2}},
                                                                     {"GRU", {3, 3, 3, 2}},
                                                                     {"GatherElements", {1, 1}},
                                                                     {"GatherND", {1, 1}},
                                                                     {"Gemm", {2, 2}},
                                                                     {"GlobalAveragePool", {2}},
                                                                     {"GlobalLpPool", {2}},
                                                                     {"GlobalMaxPool", {2}},
                                                                     {"GridSample", {3, 3}},
                                                                     {"GroupNormalization", {2, 1, 1}},
                                                                     {"InstanceNormalization", {2, 1, 1}},
                                                                     {"LRN", {2}},
                                                                     {"LSTM", {3, 3, 3, 2}},
                                                                     {"LpPool", {3}},
                                                                     {"MatMul", {1, 1}},
                                                                     {"MatMulInteger", {1, 1}},
                                                                     {"MaxPool", {3}},
                                                                     {"MaxUnpool", {3, 3}},
                                                                     {"NegativeLogLikelihoodLoss", {2, 1, 1}},
                                                                     {"QLinearConv", {3, 0, 0, 3}},
                                                                     {"QLinearMatMul", {1, 0, 0, 1}},
                                                                     {"RNN", {3, 3, 3, 2}},
                                                                     {"ReverseSequence", {2, 1}},
                                                                     {"RoiAlign", {4, 2, 1}},
                                                                     {"RotaryEmbedding", {3, 2, 2}},
                                                                     {"Scatter", {1, 1}},
                                                                     {"ScatterElements", {1, 1}},
                                                                     {"ScatterND", {1, 1}},
                                                                     {"SoftmaxCrossEntropyLoss", {2, 1, 1}},
                                                                     {"SpaceToDepth", {4}},
                                                                     {"Split", {1}},
                                                                     {"TensorScatter", {2, 2}},
                                                                     {"TopK", {1}},
                                                                     {"Trilu", {2}}};
  return known;
}

}  // namespace

void check_ranks(const ImportCall& call) {
  if (!call.node.domain.empty()) return;
  const auto found = least_ranks().find(call.node.op_type);
  if (found == least_ranks().end()) return;
  for (size_t k = 0; k < found->second.size(); ++k) {
    const auto at = static_cast<int>(k);
    if (!call.given(at) || call.item(at).form != Item::Form::tensor) continue;
    const int rank = call.graph.type(call.item(at).value).shape.rank();
    if (rank < found->second[k])
      call.refuse(
          fmt::format("its input {} has {} dimensions; it needs {} at least", k, rank, found->second[k]));
  }
}

}  // namespace millrace::onnx
