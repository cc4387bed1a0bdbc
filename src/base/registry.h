// Kinds by name: those found in their folder when CMake configured (cmake/kinds.cmake), and a program's own.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/format.h"
#include "base/suggest.h"

namespace millrace {

/// Kind has a `name`. Kinds must live as long as the program. Adding is for the beginning of a program, before other threads look.
template <typename Kind>
class Registry {
 public:
  /// `what`: "metric", for messages.
  Registry(std::string what, std::initializer_list<const Kind*> kinds)
      : what_(std::move(what)), all_(kinds) {}

  const std::vector<const Kind*>& all() const { return all_; }
  std::vector<std::string> names() const {
    std::vector<std::string> list;
    for (const Kind* kind : all_) list.emplace_back(kind->name);
    return list;
  }
  const Kind* find(std::string_view name) const {
    for (const Kind* kind : all_)
      if (kind->name == name) return kind;
    return nullptr;
  }
  /// InputError names the nearest for an unknown name.
  const Kind& at(const std::string& name) const {
    if (const Kind* kind = find(name)) return *kind;
    const std::vector<std::string> known = names();
    fail<InputError>("there is no {} '{}'; did you mean '{}'? ({})", what_, name, nearest(name, known),
                     fmt::join(known, ", "));
  }
  /// InputError when the name is taken.
  void add(const Kind& kind) {
    if (find(kind.name)) fail<InputError>("there is a {} '{}' already", what_, kind.name);
    all_.push_back(&kind);
  }

 private:
  std::string what_;
  std::vector<const Kind*> all_;
};

}  // namespace millrace
