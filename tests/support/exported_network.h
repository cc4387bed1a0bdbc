// A network as a model is exported of it.
#pragma once

#include <vector>

#include <millrace/nn.h>
#include <millrace/optim.h>

#include "onnx/export.h"
#include "optim/model_scope.h"

namespace millrace::test {

struct ExportedNetwork {
  Graph graph;                  // from "x0" and the weights to "result"
  onnx::ExportOptions options;  // with the weights
};

inline ExportedNetwork exported_network(const nn::Model& model) {
  ExportedNetwork network{optim::build_eval_graph(
                              *model.module, {{"x0", model.inputs[0].type}},
                              [](nn::Module& module, std::span<const Tensor> x) {
                                return std::vector<optim::NamedTensor>{{"result", module(x[0])}};
                              },
                              true),
                          {}};
  int at = 1;
  for (const nn::Named& named : optim::tensors_of(*model.module))
    network.options.weights[at++] = optim::value_of(named);
  return network;
}

}  // namespace millrace::test
