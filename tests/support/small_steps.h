// Training steps of small networks of each kind, on fixed batches: what is proved of whole steps is proved
// with these.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <millrace/nn.h>
#include <millrace/optim.h>

namespace millrace::test {

/// "lenet" (SGD), "residual" (a convolutional network with batch norm and dropout, AdamW), "transformer" (two
/// causal blocks with dropout, AdamW and clipping), "lstm" (a loop, and an embedding updated by rows).
const std::vector<std::string>& small_networks();

struct SmallStep {
  std::shared_ptr<nn::Module> model;
  std::unique_ptr<optim::TrainStep> step;

  /// Everything that training changes: parameters, buffers and the optimiser's state, by name.
  std::map<std::string, Array> values() const;
};

/// The compiled step with its batch filled in. `choices` as CompileOptions has them.
SmallStep make_small_step(const std::string& network, const std::string& precision = "fp32",
                          const std::map<std::string, std::string>& choices = {});

}  // namespace millrace::test
