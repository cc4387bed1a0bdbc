// Where a training's samples come from: one source, or several by name.
#include <algorithm>
#include <charconv>

#include "base/format.h"
#include "data/table/join.h"
#include "data/table/select.h"
#include "train/datasets.h"

namespace millrace::train {

TrainingSource open_training_source(const Recipe& recipe, int64_t most) {
  const auto sampled = [&](std::shared_ptr<const data::Dataset> source) {
    return most > 0 ? data::sample_of(std::move(source), most) : source;
  };
  if (recipe.data.sources.empty()) return {sampled(open_named(recipe.data.train, recipe.data.where)), {}};
  TrainingSource all;
  std::vector<std::pair<std::string, std::shared_ptr<const data::Dataset>>> named;
  for (const auto& [name, path] : recipe.data.sources) {
    named.emplace_back(name, sampled(open_named(path, recipe.data.where)));
    all.parts.push_back(named.back().second->count());
  }
  all.source = data::join(std::move(named));
  return all;
}

std::vector<double> shares_of(const Recipe& recipe, const std::vector<int64_t>& parts) {
  std::vector<double> shares;
  for (const auto& [name, weight] : recipe.data.weights) shares.push_back(weight);
  return shares.empty() ? std::vector<double>(parts.begin(), parts.end()) : shares;
}

std::vector<std::string> classes_of(const Recipe& recipe) {
  std::vector<std::string> classes;
  for (const std::string& text : recipe.data.classes) {
    const size_t dots = text.find("..");
    int64_t first = 0, last = 0;
    const char* const end = text.data() + text.size();
    if (dots == std::string::npos || std::from_chars(text.data(), end, first).ptr != text.data() + dots ||
        std::from_chars(text.data() + dots + 2, end, last).ptr != end) {
      classes.push_back(text);
      continue;
    }
    if (first != 0 || last < first || last >= 1'000'000)
      fail<InputError>(
          "data.classes: \"{}\" is no range; classes that are numbers begin at 0, as in \"0..9\"", text);
    for (; first <= last; ++first) classes.push_back(std::to_string(first));
  }
  std::vector<std::string> sorted = classes;
  std::sort(sorted.begin(), sorted.end());
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
    fail<InputError>("data.classes has '{}' twice", *twice);
  return classes;
}

}  // namespace millrace::train
