// Parameters that train at other rates than the rest.
#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <millrace/nn.h>
#include <millrace/optim.h>

namespace millrace::optim {

/// What a recipe says about rates.
struct Rates {
  /// A pattern of names ("encoder.*", * being any letters) and a factor; the first that fits counts.
  std::vector<std::pair<std::string, double>> by_name = {};
  /// < 1: the rate of a layer is so many times that of the one behind it.
  double layer_decay = 1;
  /// The parameters in the order in which the model uses them; empty: as they are registered.
  std::vector<std::string> by_use = {};
};

/// The factor of each parameter's rate; empty: all are 1. InputError for a pattern that fits no parameter,
/// and for layer_decay where the names number fewer than two layers.
std::map<std::string, double> rate_factors(const Rates& rates, nn::Module& model);

/// How many layers stand behind each parameter's, of names in the order of use: 0 for what is behind the last
/// numbered one (heads). A layer is what is in front of the first number in a name, and the number
/// ("blocks.3"); what is before the first layer (embeddings) is a layer, too. InputError as above.
std::map<std::string, int64_t> layers_behind(std::span<const std::string> names);

/// Groups that train as `groups` say, at rates times these factors.
std::vector<Group> with_factors(const std::vector<Group>& groups,
                                const std::map<std::string, double>& factors, nn::Module& model);

}  // namespace millrace::optim
