#include "passes/rules/rule.h"

namespace millrace {

#include "generated/rules.inc"

Registry<Rule>& rules() {
  static Registry<Rule> all("rule", {MILLRACE_FOUND_RULES});
  return all;
}

}  // namespace millrace
