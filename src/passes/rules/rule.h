// Algebraic rules, applied by the simplify pass. Each is a file here with MILLRACE_RULE(name){…}.
#pragma once

#include <string_view>
#include <vector>

#include <millrace/graph.h>

#include "base/registry.h"

namespace millrace {

/// A rule looks at one node whose operands are already in the new graph, and may give a value that stands for
/// its result.
struct Rule {
  std::string_view name, doc = {};  // their text must stay
  int place = 0;                    // the library's have 10, 20 …
  /// Results are the same bit for bit, except for the sign of a zero. Other rules change the order or number
  /// of roundings; exact programs (CompileOptions::exact) do without.
  bool exact = false;
  /// An invalid Value when the rule does not apply. Who else reads the operands is not known: a rule must pay
  /// even when they are computed for others too.
  Value (*apply)(Graph& graph, const Node& node, const std::vector<Value>& operands) = nullptr;
};

#define MILLRACE_RULE(NAME)      \
  extern const Rule rule_##NAME; \
  const Rule rule_##NAME

/// In the order they are tried; the first that applies wins.
Registry<Rule>& rules();

}  // namespace millrace
