#include "backend/cpu/target.h"

#include "backend/cpu/codegen/codegen_provider.h"
#include "backend/cpu/codegen/matmul_provider.h"
#include "backend/cpu/kernels/attention.h"
#include "backend/cpu/kernels/depthwise/provider.h"
#include "backend/cpu/kernels/first_occurrence.h"
#include "backend/cpu/kernels/gemm/provider.h"
#include "backend/cpu/kernels/layer_norm.h"
#include "backend/cpu/kernels/resize/provider.h"
#include "backend/cpu/kernels/scatter_add.h"
#include "backend/cpu/kernels/scatter_rows.h"
#include "backend/cpu/kernels/winograd/provider.h"
#include "backend/cpu/onednn/provider.h"
#include "backend/cpu/onednn/staged_kernel.h"
#include "backend/ref/provider.h"

namespace millrace::cpu {

Target make_target() {
  Target target;
  target.name = "cpu";
  target.fuses = true;
  target.fast_bf16 = onednn::has_bf16_units();
  target.providers.push_back(make_depthwise_provider());
  target.providers.push_back(make_winograd_provider());
  target.providers.push_back(make_small_matmul_provider());
  target.providers.push_back(make_gemm_provider());
  target.providers.push_back(make_onednn_provider());
  target.providers.push_back(make_attention_provider());
  target.providers.push_back(make_layer_norm_provider());
  target.providers.push_back(make_scatter_add_provider());
  target.providers.push_back(make_scatter_rows_provider());
  target.providers.push_back(make_first_occurrence_provider());
  target.providers.push_back(make_resize_provider());
  target.providers.push_back(make_codegen_provider());
  target.providers.push_back(ref::make_provider());
  return target;
}

}  // namespace millrace::cpu
