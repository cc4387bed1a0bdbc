// One model of several: a branch for each input of a sample, and a head for each thing that is predicted.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <millrace/nn.h>
#include <millrace/settings.h>

namespace millrace::nn {

/// The model of one input of a sample, which gives features f32 [batch, width]: an architecture made with
/// ModelOptions::classes = CombineOptions::features. It takes what model.inputs says; a caller that feeds it
/// more (the segments of padded texts) adds that there. A branch that wants Model::fit is fitted by the
/// caller, who has its samples: the branch's own `fit` stays good after initialise() of the whole.
struct Branch {
  std::string name;
  Model model;
};

/// `width` outputs of the model.
struct Head {
  std::string name;
  int64_t width = 1;
};

struct CombineOptions {
  int64_t features = 64;  // of each branch, for those who make them
  int64_t width = 128, depth = 1;
  double dropout = 0;
  std::vector<Head> heads;
};

/// features, width, depth and dropout as settings, and back.
std::vector<Setting> combine_settings();
CombineOptions combine_options(const Settings& settings, std::vector<Head> heads);

/// Children "branches.NAME", "body" and "heads.NAME". The last dimension of its output holds the heads'
/// outputs one after the other: f32 [batch, sum of widths].
class Combined : public Module {
 public:
  /// InputError for no branch or head, a name that is empty, taken or has a dot, and for a branch without
  /// features.
  Combined(const std::vector<Branch>& branches, const CombineOptions& options);
  /// The branches' inputs, one branch after the other.
  Tensor forward_many(std::span<const Tensor> inputs) override;
  /// Each head's output f32 [batch, width] for itself.
  std::vector<Tensor> heads(std::span<const Tensor> inputs);

 private:
  struct Part {
    std::string name;
    std::shared_ptr<Module> module;
    size_t inputs;
  };
  std::vector<Part> branches_;
  size_t inputs_ = 0;
  Sequential* body_ = nullptr;
  std::vector<Linear*> heads_;
};

/// The features of all branches are joined, go through `depth` times (linear of `width`, relu, dropout), and
/// then through a linear layer for each head. Inputs are the branches' own, called as the branch, or
/// "branch.input" where it takes several. A single branch hands its `fit` on.
Model combine(std::vector<Branch> branches, const CombineOptions& options);

}  // namespace millrace::nn
