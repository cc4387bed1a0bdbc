#include "optim/rates.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <fnmatch.h>
#include <set>

#include "base/contains.h"
#include "base/format.h"
#include "base/suggest.h"

namespace millrace::optim {
namespace {

/// "blocks.3" of "blocks.3.attention.weight"; empty where no part of the name is a number.
std::string numbered_layer(const std::string& name) {
  for (size_t begin = 0; begin < name.size();) {
    const size_t end = std::min(name.find('.', begin), name.size());
    if (end > begin && std::all_of(name.begin() + static_cast<std::ptrdiff_t>(begin),
                                   name.begin() + static_cast<std::ptrdiff_t>(end),
                                   [](unsigned char c) { return std::isdigit(c); }))
      return name.substr(0, end);
    begin = end + 1;
  }
  return {};
}

}  // namespace

std::map<std::string, int64_t> layers_behind(std::span<const std::string> names) {
  std::vector<std::string> layers;       // in their order
  std::map<std::string, size_t> before;  // of what has no number: how many layers are
  for (const std::string& name : names) {
    const std::string layer = numbered_layer(name);
    if (layer.empty())
      before[name] = layers.size();
    else if (!contains(layers, layer))
      layers.push_back(layer);
  }
  if (layers.size() < 2)
    fail<InputError>(
        "train.layer_decay: the names of this model's parameters number no layers ({} …): give factors by "
        "name, train.rates = [\"PATTERN 0.1\"]",
        names.empty() ? "" : names[0]);
  const auto count = static_cast<int64_t>(layers.size());
  std::map<std::string, int64_t> behind;
  for (const std::string& name : names) {
    const auto outside = before.find(name);
    if (outside == before.end())
      behind[name] = count - (std::find(layers.begin(), layers.end(), numbered_layer(name)) - layers.begin());
    else  // a part of the layer that comes next
      behind[name] = outside->second == 0 ? count + 1 : count - static_cast<int64_t>(outside->second);
  }
  // Where the last layer has a number, nothing is behind it.
  int64_t least = count + 1;
  for (const auto& [name, layers_left] : behind) least = std::min(least, layers_left);
  for (auto& [name, layers_left] : behind) layers_left -= least;
  return behind;
}

std::map<std::string, double> rate_factors(const Rates& rates, nn::Module& model) {
  std::map<std::string, double> factors;
  std::vector<std::string> names;
  for (const nn::Named& p : model.parameters()) names.push_back(p.name);
  if (rates.layer_decay != 1)
    for (const auto& [name, behind] : layers_behind(rates.by_use.empty() ? names : rates.by_use))
      factors[name] = std::pow(rates.layer_decay, static_cast<double>(behind));
  std::set<std::string> done;
  for (const auto& [pattern, factor] : rates.by_name) {
    bool fits = false;
    for (const std::string& name : names) {
      if (::fnmatch(pattern.c_str(), name.c_str(), 0) != 0) continue;
      fits = true;
      if (!done.insert(name).second) continue;
      const auto known = factors.try_emplace(name, 1.0).first;
      known->second *= factor;
    }
    if (!fits)
      fail<InputError>("train.rates: no parameter is called '{}'{}", pattern, did_you_mean(pattern, names));
  }
  return factors;
}

std::vector<Group> with_factors(const std::vector<Group>& groups,
                                const std::map<std::string, double>& factors, nn::Module& model) {
  if (factors.empty()) return groups;
  // One group for each factor and what the parameter would have had.
  std::map<std::pair<size_t, double>, std::set<std::string>> names;
  for (const nn::Named& p : model.parameters()) {
    const auto factor = factors.find(p.name);
    if (factor == factors.end() || factor->second == 1) continue;
    size_t own = 0;
    while (own < groups.size() && !groups[own].applies(p.name, p.tensor->type())) ++own;
    names[{own, factor->second}].insert(p.name);
  }
  std::vector<Group> all;
  for (auto& [key, members] : names) {
    Group group = key.first < groups.size() ? groups[key.first] : Group{};
    group.lr_scale *= key.second;
    group.applies = [members = std::move(members)](const std::string& name, const Type&) {
      return members.contains(name);
    };
    all.push_back(std::move(group));
  }
  all.insert(all.end(), groups.begin(), groups.end());
  return all;
}

}  // namespace millrace::optim
