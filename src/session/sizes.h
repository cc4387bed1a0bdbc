// The sizes that a model is run for.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <millrace/session.h>

#include "base/format.h"
#include "base/next_size.h"

namespace millrace {

/// The names of the dimensions that values have, each once.
inline std::set<std::string> named_dimensions(const std::vector<SessionValue>& values) {
  std::set<std::string> names;
  for (const SessionValue& value : values)
    for (const Dim& dim : value.type.shape) names.insert(dim.names().begin(), dim.names().end());
  return names;
}

/// "batch 8, length 64"
inline std::string sizes_words(const Bindings& sizes) {
  std::string text;
  for (const auto& [name, size] : sizes) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, size);
  return text.empty() ? "its sizes" : text;
}

}  // namespace millrace
