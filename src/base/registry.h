// Kinds by name: those found in their folder when CMake configured (cmake/kinds.cmake), and a program's own.
#pragma once

#include <algorithm>
#include <atomic>
#include <deque>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/suggest.h"

namespace millrace {

/// What a kind's own function has made. InputError when that is nothing; `what`: "metric".
template <typename Made>
std::unique_ptr<Made> made_by(std::string_view what, std::string_view name, std::unique_ptr<Made> made) {
  if (!made) fail<InputError>("the {} '{}' makes nothing: its function gives null", what, name);
  return made;
}

/// Kind has a `name`, and a `place` where their order means something: a smaller one is before a greater one.
/// Looking needs no lock: adding makes a new list, and old ones stay, since somebody may be reading them.
template <typename Kind>
class Registry {
 public:
  /// `what`: "metric", for messages. The kinds live as long as the program.
  Registry(std::string what, const std::vector<const Kind*>& kinds) : what_(std::move(what)) {
    std::vector<const Kind*>& list = lists_.emplace_back();
    for (const Kind* kind : kinds) insert(list, *kind);
    current_ = &list;
  }

  /// By place, then by name those of the library, then others as they came. It does not change when one is
  /// added.
  const std::vector<const Kind*>& all() const { return *current_; }
  std::vector<std::string> names() const {
    std::vector<std::string> list;
    for (const Kind* kind : all()) list.emplace_back(kind->name);
    return list;
  }
  const Kind* find(std::string_view name) const {
    for (const Kind* kind : all())
      if (kind->name == name) return kind;
    return nullptr;
  }
  /// InputError names the nearest for an unknown name.
  const Kind& at(std::string_view name) const {
    if (const Kind* kind = find(name)) return *kind;
    const std::vector<std::string> known = names();
    fail<InputError>("there is no {} '{}'{} ({})", what_, name, did_you_mean(name, known),
                     fmt::join(known, ", "));
  }
  /// For the rest of the process; what was made before does not know it. `parts`: by name, whether it has
  /// what it must have. InputError when one is missing, or its line of documentation, or the name is taken or
  /// none.
  const Kind& add(Kind kind, std::initializer_list<std::pair<const char*, bool>> parts = {}) {
    const std::string_view name = kind.name;
    if (name.empty() || name.find_first_of(" \t\n=,") != std::string_view::npos)
      fail<InputError>("the name of {} must be one word, not '{}'", a(what_), name);
    for (const auto& [part, given] : parts)
      if (!given) fail<InputError>("the {} '{}' lacks its `{}`", what_, name, part);
    const std::lock_guard lock(adding_);
    if (find(name)) fail<InputError>("there is {} '{}' already", a(what_), name);
    if constexpr (requires { kind.doc; })
      if (kind.doc.empty()) fail<InputError>("the {} '{}' lacks its `doc`", what_, name);
    const Kind& added = own_.emplace_back(std::move(kind));
    std::vector<const Kind*>& list = lists_.emplace_back(all());
    insert(list, added);
    current_ = &list;
    return added;
  }

 private:
  static void insert(std::vector<const Kind*>& list, const Kind& kind) {
    auto at = list.end();
    if constexpr (requires { kind.place; })
      at = std::upper_bound(list.begin(), list.end(), &kind,
                            [](const Kind* one, const Kind* other) { return one->place < other->place; });
    list.insert(at, &kind);
  }
  static std::string a(const std::string& what) {
    return (std::string_view("aeiou").find(what[0]) == std::string_view::npos ? "a " : "an ") + what;
  }

  std::string what_;
  std::mutex adding_;
  std::deque<Kind> own_;
  std::deque<std::vector<const Kind*>> lists_;  // the last one counts
  std::atomic<const std::vector<const Kind*>*> current_ = nullptr;
};

}  // namespace millrace
