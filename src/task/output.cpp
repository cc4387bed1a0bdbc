#include "task/output.h"

#include "base/format.h"
#include "task/recipe.h"

namespace millrace::task {

const OutputKind& Output::kind() const { return output_kinds().at(section_.kind); }

std::vector<Setting> common_output_settings() {
  return {{"column", "column of the targets; empty: found by its name or its values", std::string()},
          {"of", "name of the input whose tokens are predicted; empty: the only one", std::string()},
          {"weight", "of this output in the sum of all losses", 1.0, 0, 1e6},
          {"loss", "kind of loss (or a table of it: kind and its keys); empty: the usual one of the output",
           std::string()}};
}

std::pair<std::string, Tensor> accuracy_of(const Tensor& logits, const Tensor& targets) {
  return {"accuracy", cast(equal(argmax(logits, -1), targets), f32)};
}

}  // namespace millrace::task
