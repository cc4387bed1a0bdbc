#include "task/class_weights.h"

#include <algorithm>
#include <optional>
#include <set>

#include "base/format.h"
#include "base/number_from.h"
#include "base/suggest.h"
#include "base/words.h"
#include "task/class_names.h"

namespace millrace::task {
namespace {

constexpr const char* balanced_word = "balanced";

/// "spam=5", or "5" alone, whose name is "".
struct NamedWeight {
  std::string name;
  double weight = 0;
};

std::optional<double> weight_of(std::string_view text) {
  const std::optional<double> weight = number_from<double>(text);
  return weight && *weight >= 0 && *weight <= 1e9 ? weight : std::nullopt;
}

std::vector<NamedWeight> parse_weights(const std::vector<std::string>& list, const std::string& key) {
  std::vector<NamedWeight> weights;
  std::set<std::string> seen;
  for (const std::string& entry : list) {
    const size_t equals = entry.rfind('=');
    NamedWeight one;
    if (equals != std::string::npos) one.name = trimmed(std::string_view(entry).substr(0, equals));
    const auto weight =
        weight_of(trimmed(std::string_view(entry).substr(equals == std::string::npos ? 0 : equals + 1)));
    if (!weight || (equals != std::string::npos && one.name.empty()))
      fail<InputError>(
          "{}: '{}' is not a weight: write \"balanced\", the weights in the order of the classes, [1, 5], or "
          "some of them by name, {{ spam = 5 }}, each from 0 to 1e9",
          key, entry);
    if (!one.name.empty() && !seen.insert(one.name).second)
      fail<InputError>("{} names '{}' twice", key, one.name);
    one.weight = *weight;
    weights.push_back(std::move(one));
  }
  const auto unnamed =
      std::count_if(weights.begin(), weights.end(), [](const auto& w) { return w.name.empty(); });
  if (unnamed != 0 && unnamed != std::ssize(weights))
    fail<InputError>("{}: give all weights a name, or none", key);
  if (!weights.empty() &&
      std::all_of(weights.begin(), weights.end(), [](const auto& w) { return w.weight == 0; }) &&
      unnamed != 0)
    fail<InputError>("{}: all weights are 0, so that nothing would be learnt", key);
  return weights;
}

bool is_balanced(const std::vector<std::string>& list) {
  return list.size() == 1 && list[0] == balanced_word;
}

}  // namespace

Setting class_weights_setting(const std::string& name, const std::string& doc) {
  Setting setting{name, doc, std::vector<std::string>()};
  setting.named_numbers = true;
  return setting;
}

void check_class_weights(const std::vector<std::string>& list, const std::string& key) {
  if (!is_balanced(list)) (void)parse_weights(list, key);
}

std::vector<double> class_weights(const std::vector<std::string>& list, const std::string& key,
                                  const std::vector<std::string>& classes, std::span<const double> balanced) {
  if (list.empty()) return {};
  if (is_balanced(list)) {
    if (balanced.empty())
      fail<InputError>(
          "{} = \"balanced\" goes by how often each class is, which is not known before the end of a stream: "
          "give the weights themselves",
          key);
    return {balanced.begin(), balanced.end()};
  }
  const std::vector<NamedWeight> given = parse_weights(list, key);
  std::vector<double> weights(classes.size(), 1);
  if (given[0].name.empty()) {
    if (given.size() != classes.size())
      fail<InputError>("{} has {} weights, and there are {} classes ({})", key, given.size(), classes.size(),
                       names_text(classes));
    for (size_t i = 0; i < given.size(); ++i) weights[i] = given[i].weight;
    return weights;
  }
  for (const NamedWeight& one : given) {
    const auto found = std::find(classes.begin(), classes.end(), one.name);
    if (found == classes.end())
      fail<InputError>("{}: there is no class '{}'{} ({})", key, one.name, did_you_mean(one.name, classes),
                       names_text(classes));
    weights[static_cast<size_t>(found - classes.begin())] = one.weight;
  }
  return weights;
}

}  // namespace millrace::task
