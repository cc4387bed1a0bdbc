// What profile and explain look at.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <millrace/program.h>
#include <millrace/run.h>
#include <millrace/session.h>

#include "cli/command.h"
#include "cli/zoo.h"

namespace millrace::cli {

/// A recipe's step, that of a model's file, or of a built-in network.
struct StepArguments {
  std::string recipe, sizes, precision;
  std::vector<std::string> overrides;
  ZooOptions zoo;
  bool infer = false, json = false;

  Command& declare(Command& command);
  /// Is it of a model's file? InputError for arguments that do not go together.
  bool of_file();
  /// Prints messages, where standard output is not for a JSON object alone.
  train::Observer observer() const;
};

/// A model that a session loads, compiled for some sizes and run on made-up inputs.
class ModelStep {
 public:
  /// InputError when the model cannot have such sizes.
  explicit ModelStep(const StepArguments& arguments);
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
