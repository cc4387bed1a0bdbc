#include "task/outputs/class_draft.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/words.h"
#include "data/codecs/text/first_group.h"
#include "data/table/labels.h"

namespace millrace::task {
namespace {

/// A pattern by which the names of files tell a class, "7_ann_12" or "cat12": of each at least five; "" for
/// none.
std::string pattern_of_keys(const data::Dataset& samples) {
  const auto key = data::key_column(samples);
  if (!key) return {};
  for (const char* text : {"([^/_-]+)[_-][^/]*$", "([^/0-9]+)[0-9]+$"}) {
    const data::FirstGroup pattern(text);
    std::map<std::string, int64_t> classes;
    int64_t matched = 0;
    for (; matched < samples.count(); ++matched) {
      const auto found = pattern.find(std::get<std::string>(samples.read(matched, *key)));
      if (!found) break;
      ++classes[*found];
    }
    const auto few = [](const auto& each) { return each.second < 5; };
    if (matched == samples.count() && classes.size() > 1 && std::none_of(classes.begin(), classes.end(), few))
      return text;
  }
  return {};
}

/// What the classes' texts have around them that makes several of one: blanks, or the full stop of one of two
/// sets ("<=50K.").
std::string trim_of(const std::vector<std::string>& classes, const std::vector<std::string>& of_tests) {
  const auto all_trimmed = [](const std::vector<std::string>& names, const std::string& trim) {
    std::set<std::string_view> some;
    for (const std::string& name : names) some.insert(trimmed(name, trim));
    return some;
  };
  const bool blanks = all_trimmed(classes, " ") != all_trimmed(classes, "");
  for (const char* trim : {"", " ", ".", " ."}) {
    if (blanks && trim[0] != ' ') continue;
    const auto known = all_trimmed(classes, trim), others = all_trimmed(of_tests, trim);
    if (std::includes(known.begin(), known.end(), others.begin(), others.end())) return trim;
  }
  return blanks ? " " : "";
}

}  // namespace

std::string derive_class(Section& section, const data::Dataset& samples) {
  const std::string pattern = pattern_of_keys(samples);
  if (pattern.empty()) return {};
  section.set("column", std::string("__key__"));
  section.set("pattern", pattern);
  return "a part of the samples' names, which pattern cuts out";
}

SectionKeys draft_class(const std::vector<std::string>& classes, const std::vector<std::string>& of_tests) {
  const std::string trim = trim_of(classes, of_tests);
  if (trim.empty()) return {};
  return {{"trim", trim}};
}

}  // namespace millrace::task
