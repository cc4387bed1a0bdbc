#include "ir/operators.h"

#include <string>
#include <vector>

#include "base/registry.h"
#include "ir/missing_parts.h"

#define KIND(NAME) const millrace::Operator& op_##NAME();
#include "generated/operators.inc"
#undef KIND

namespace millrace {
namespace {

Registry<Operator>& operators() {
  const auto own = library_operators();
  static Registry<Operator> registry("operator", {own.begin(), own.end()});
  return registry;
}

}  // namespace

std::span<const Operator* const> library_operators() {
  static const std::vector<const Operator*> list = {
#define KIND(NAME) &op_##NAME(),
#include "generated/operators.inc"
#undef KIND
  };
  return list;
}

void check_operators() {
  static const std::vector<std::string> missing = missing_parts(library_operators());
  if (!missing.empty()) fail<InternalError>("operators are incomplete: {}", fmt::join(missing, "; "));
}

const Operator& register_operator(Operator op) {
  const Operator* list[] = {&op};
  std::vector<std::string> missing = missing_parts(list, false);
  // The library's have theirs in the reference back end.
  if (op.op_class == OpClass::heavy && !op.evaluate)
    missing.push_back(fmt::format("{} lacks what computes it in the reference back end", op.name));
  if (!missing.empty()) fail<InputError>("the operator is incomplete: {}", fmt::join(missing, "; "));
  return operators().add(std::move(op));
}

const Operator* find_operator(std::string_view name) { return operators().find(name); }

const Operator& get_operator(std::string_view name) {
  if (const Operator* op = find_operator(name)) return *op;
  const std::string best = near(name, operators().names());
  fail<InputError>("there is no operator '{}'{}", name,
                   best.empty() ? "" : fmt::format("; the nearest is '{}'", best));
}

std::span<const Operator* const> all_operators() { return operators().all(); }

}  // namespace millrace
