#include "passes/rules/rule.h"

namespace millrace {

#define KIND(NAME) extern const Rule rule_##NAME;
#include "generated/rules.inc"
#undef KIND

Registry<Rule>& rules() {
#define KIND(NAME) &rule_##NAME,
  static Registry<Rule> all("rule", {
#include "generated/rules.inc"
                                    });
#undef KIND
  return all;
}

}  // namespace millrace
