// A model's parameters and buffers stood in for by symbols while its graph is recorded.
#pragma once

#include <string>
#include <vector>

#include <millrace/nn.h>

#include "trace/linearise.h"

namespace millrace::optim {

/// Replaces the tensors of a model; puts tensors and mode back at the end of the scope. Parameters that are
/// stored as bf16 are seen as f32.
class ModelScope {
 public:
  ModelScope(nn::Module& model, bool training);
  ~ModelScope();
  ModelScope(const ModelScope&) = delete;

  const std::vector<nn::Named>& parameters() const { return parameters_; }
  const std::vector<nn::Named>& buffers() const { return buffers_; }
  /// Symbols in the order of parameters, then buffers (by use_symbols), or the values under their names.
  const std::vector<Tensor>& stand_ins() const { return stand_ins_; }
  void use_symbols();
  void use_constants();
  /// What was captured with the stand-ins as inputs from `first` on, its inputs now of the dtypes in which
  /// the model stores its parameters.
  trace::Captured as_stored(trace::Captured captured, int first) const;

 private:
  /// Whether parameter i is stored as bf16 (i counts buffers too).
  bool stored_narrow(size_t i) const;
  void replace(const std::function<Tensor(const nn::Named&)>& make);

  nn::Module& model_;
  bool training_;
  std::vector<nn::Named> parameters_, buffers_;
  std::vector<Tensor> originals_, stand_ins_;
};

/// What was captured with the inputs that `narrow` tells stored as bf16.
trace::Captured with_narrow_inputs(trace::Captured captured, const std::vector<bool>& narrow);

/// Its parameters, then its buffers.
std::vector<nn::Named> tensors_of(nn::Module& model);
/// The concrete value of a parameter or buffer; InputError when it has none.
Array value_of(const nn::Named& named);

}  // namespace millrace::optim
