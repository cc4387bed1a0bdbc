// A model that a session loads, compiled for some sizes and run on made-up inputs: what profile and explain
// look at.
#pragma once

#include <optional>
#include <string>

#include <millrace/program.h>
#include <millrace/session.h>

namespace millrace::cli {

/// Is the argument a model rather than a recipe? With `infer` a run folder is one, too.
bool is_model(const std::string& path, bool infer);

class ModelStep {
 public:
  /// `precision`: empty for the model's own. InputError when the model cannot have such sizes.
  ModelStep(const std::string& path, const std::string& sizes, const std::string& precision);
  void run() { program_->run(); }
  Program& program() { return *program_; }
  /// "inference, batch=1, fp32"
  std::string detail() const;
  /// The first dimension of the first input.
  int64_t items() const { return items_; }

 private:
  std::optional<Program> program_;
  Bindings sizes_;
  std::string precision_;
  int64_t items_ = 1;
};

}  // namespace millrace::cli
