#include "nn/models/combine.h"

#include <set>

#include "base/format.h"

namespace millrace::nn {
namespace {

/// Names are parts of the names of parameters, which dots divide.
void check_part_names(const char* what, const std::vector<std::string>& names) {
  if (names.empty()) fail<InputError>("a model of several parts needs at least one {}", what);
  std::set<std::string> seen;
  for (const std::string& name : names) {
    if (name.empty() || name.find('.') != std::string::npos)
      fail<InputError>("the name of a {} must have letters and no dot, not '{}'", what, name);
    if (!seen.insert(name).second) fail<InputError>("there are two of the {} '{}'", what, name);
  }
}

/// How many features the branch gives; InputError unless it gives some for each sample.
int64_t branch_features(const Branch& branch) {
  if (!branch.model.module) fail<InputError>("the branch '{}' has no model", branch.name);
  std::vector<Type> types;
  for (const InputSpec& input : branch.model.inputs) types.push_back(input.type);
  const Type type = output_type(*branch.model.module, types);
  if (type.shape.rank() != 2 || !type.shape[1].is_static())
    fail<InputError>(
        "the model '{}' of the branch '{}' gives {}, not features [batch, width]; choose one that gives "
        "classes",
        branch.model.kind, branch.name, type.str());
  return type.shape[1].size();
}

}  // namespace

std::vector<Setting> combine_settings() {
  return {
      {"features", "of each input, before they are joined", int64_t{64}, 1, 1 << 16},
      {"width", "of the layers behind", int64_t{128}, 1, 1 << 16},
      {"depth", "how many layers there are between the joined features and the outputs", int64_t{1}, 0, 1000},
      {"dropout", "share of values set to 0 in training, behind each layer", 0.0, 0, 0.9}};
}

CombineOptions combine_options(const Settings& settings, std::vector<Head> heads) {
  return {settings.integer("features"), settings.integer("width"), settings.integer("depth"),
          settings.number("dropout"), std::move(heads)};
}

Combined::Combined(const std::vector<Branch>& branches, const CombineOptions& options) {
  std::vector<std::string> names;
  for (const Branch& branch : branches) names.push_back(branch.name);
  check_part_names("branch", names);
  names.clear();
  for (const Head& head : options.heads) names.push_back(head.name);
  check_part_names("head", names);
  if (options.depth < 0 || options.width < 1)
    fail<InputError>("there cannot be {} layers that are {} wide", options.depth, options.width);

  int64_t features = 0;
  for (const Branch& branch : branches) {
    features += branch_features(branch);
    branches_.push_back(
        {branch.name, child("branches." + branch.name, branch.model.module), branch.model.inputs.size()});
    inputs_ += branch.model.inputs.size();
  }
  body_ = &make<Sequential>("body");
  for (int64_t i = 0; i < options.depth; ++i) {
    body_->append(std::make_shared<Linear>(features, options.width));
    body_->append(nn::relu());
    if (options.dropout > 0) body_->append(std::make_shared<Dropout>(options.dropout));
    features = options.width;
  }
  for (const Head& head : options.heads) {
    if (head.width < 1) fail<InputError>("the head '{}' cannot have {} outputs", head.name, head.width);
    heads_.push_back(&make<Linear>("heads." + head.name, features, head.width));
  }
}

std::vector<Tensor> Combined::heads(std::span<const Tensor> inputs) {
  if (inputs.size() != inputs_)
    fail<TypeError>("the model takes {} inputs for its {} branches, {} are given", inputs_, branches_.size(),
                    inputs.size());
  std::vector<Tensor> features;
  for (const Part& branch : branches_) {
    features.push_back((*branch.module)(inputs.first(branch.inputs)));
    inputs = inputs.subspan(branch.inputs);
  }
  const Tensor joined = (*body_)(features.size() == 1 ? features[0] : concat(features, 1));
  std::vector<Tensor> outputs;
  for (Linear* head : heads_) outputs.push_back((*head)(joined));
  return outputs;
}

Tensor Combined::forward_many(std::span<const Tensor> inputs) {
  const std::vector<Tensor> outputs = heads(inputs);
  return outputs.size() == 1 ? outputs[0] : concat(outputs, 1);
}

Model combine(std::vector<Branch> branches, const CombineOptions& options) {
  Model whole{"combined", std::make_shared<Combined>(branches, options), {}};
  for (Branch& branch : branches)
    for (InputSpec& input : branch.model.inputs) {
      const bool single = branch.model.inputs.size() == 1;
      input.name = single ? branch.name : branch.name + "." + input.name;
      whole.inputs.push_back(std::move(input));
    }
  if (branches.size() == 1) whole.fit = branches[0].model.fit;
  return whole;
}

}  // namespace millrace::nn
