// What a user would do without a model: "hours > 40 and age > 30 -> '>50K'; '<=50K'".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/dataset.h>

#include "data/table/query.h"

namespace millrace::baseline {

struct Rule {
  std::optional<data::Query> condition;  // none: of all samples
  std::string value;                     // a class, or arithmetic
};

/// Rules stand behind one another with a ; between them, each CONDITION -> VALUE, the last one maybe VALUE
/// alone. InputError.
std::vector<Rule> parse_rules(const std::string& text);

/// Of each sample the first rule whose condition is true for it; −1: none.
std::vector<int64_t> rule_of_each(const std::vector<Rule>& rules, const data::Dataset& from);

/// A text without the quotes around it.
std::string unquoted(const std::string& text);

}  // namespace millrace::baseline
