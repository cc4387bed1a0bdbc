#include "check/changes.h"

#include <algorithm>
#include <cctype>
#include <variant>

#include "base/format.h"
#include "base/words.h"

namespace millrace::check {

std::vector<std::string> said_by(const task::Input& input, std::string_view part) {
  std::vector<std::string> texts;
  for (const Setting& setting : input.settings().declared()) {
    if (setting.name.find(part) == std::string::npos) continue;
    if (std::holds_alternative<std::vector<std::string>>(setting.usual))
      for (const std::string& text : input.settings().texts(setting.name)) texts.push_back(text);
    else if (std::holds_alternative<std::string>(setting.usual) &&
             !input.settings().text(setting.name).empty())
      texts.push_back(input.settings().text(setting.name));
  }
  return texts;
}

bool any_has(const std::vector<std::string>& texts, std::initializer_list<const char*> words) {
  return std::any_of(texts.begin(), texts.end(), [&](const std::string& text) {
    return std::any_of(words.begin(), words.end(),
                       [&](const char* word) { return text.find(word) != std::string::npos; });
  });
}

std::string mirrored_classes(const task::Task& task) {
  std::vector<std::string> sides, signs;
  size_t classes = 0;
  for (const auto& output : task.outputs)
    for (const std::string& name : output->classes()) {
      ++classes;
      const std::string lower = lower_case(name);
      if (lower.find("left") != std::string::npos || lower.find("right") != std::string::npos)
        sides.push_back(name);
      if (name.size() == 1 && std::isalnum(static_cast<unsigned char>(name[0]))) signs.push_back(name);
    }
  if (sides.size() >= 2) return fmt::format("{}", fmt::join(sides, ", "));
  // One or two such names may be anything.
  return signs.size() >= 5 && signs.size() == classes ? fmt::format("{}", fmt::join(signs, ", ")) : "";
}

}  // namespace millrace::check
