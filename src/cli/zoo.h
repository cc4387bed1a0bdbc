// The built-in networks on random inputs: what bench, profile, explain and estimate run.
#pragma once

#include <memory>
#include <string>

#include <millrace/nn.h>
#include <millrace/optim.h>
#include <millrace/program.h>

namespace millrace::cli {

struct ZooOptions {
  std::string model;
  int64_t batch = 1;
  bool train = true;  // else inference
  std::string precision = "fp32";
  std::string optimizer = "adamw";  // or "sgd", with momentum 0.9
  bool exact = false;               // CompileOptions::exact
  std::string memory;               // CompileOptions::memory, as text: "1.5GB"
  int64_t accumulate = 1;           // TrainOptions::accumulate
};

/// A compiled step of a built-in network. InputError names the model or optimiser that does not exist.
class ZooStep {
 public:
  explicit ZooStep(const ZooOptions& options);
  void run();
  Program& program() { return train_ ? train_->program() : *infer_; }
  int64_t batch() const { return batch_; }

 private:
  void build_train(const ZooOptions& options);
  void build_infer(const ZooOptions& options);

  nn::Model model_;
  int64_t batch_;
  double lr_;
  std::unique_ptr<optim::TrainStep> train_;
  std::unique_ptr<Program> infer_;
};

CompileOptions compile_options(const ZooOptions& options);
/// A built-in network without its training, its result called "y".
Graph inference_graph(const nn::Model& model, const Bindings& sizes);
/// Random values as the model takes them: normal floats, integers below the vocabulary.
void fill_random(Array& array, const nn::InputSpec& spec, uint64_t stream);
/// A batch size given as text; InputError when it is none.
int64_t parse_batch(const std::string& text);
/// The arithmetic in use, and what was wanted where that says more.
std::string precision_text(const std::string& wanted, const Program& program);
/// "training, batch 128, fp32"
std::string step_text(bool train, int64_t batch, const std::string& precision, const Program& program);
/// " mlp lenet …", for help texts.
std::string model_names();

}  // namespace millrace::cli
