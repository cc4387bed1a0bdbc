// Any text as a formula and as rules of a heuristic, asked of a small data set: answers or refusals.
#include "data/table/formula.h"

#include <cstdlib>

#include "baseline/rules.h"
#include "data/table/select.h"
#include "fuzz/fuzz.h"

using namespace millrace;
using namespace millrace::data;

namespace {

class Few final : public Dataset {
 public:
  Few() : Dataset("few") {
    columns_ = {{"age", ColumnKind::integer}, {"income", ColumnKind::real}, {"town", ColumnKind::text}};
  }
  int64_t count() const override { return 4; }
  bool has(int64_t index, size_t column) const override { return index != static_cast<int64_t>(column); }
  data::Value read(int64_t index, size_t column) const override {
    if (!has(index, column)) return {};
    if (column == 0) return index;
    if (column == 1) return 0.5 * static_cast<double>(index);
    return std::string(static_cast<size_t>(index), 'a');
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Few dataset;
  const std::string text(fuzz::text(data, size));
  fuzz::refuse_or_take([&] {
    if (std::ssize(formula_values(text, dataset)) != dataset.count()) std::abort();
  });
  fuzz::refuse_or_take([&] {
    const auto rules = baseline::parse_rules(text);
    for (const int64_t rule : baseline::rule_of_each(rules, dataset))
      if (rule < -1 || rule >= std::ssize(rules)) std::abort();
    for (const auto& rule : rules) (void)baseline::unquoted(rule.value);
  });
  return 0;
}
