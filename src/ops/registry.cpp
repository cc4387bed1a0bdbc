#include "ops/registry.h"

#include <map>
#include <string>
#include <vector>

#include "base/format.h"
#include "base/suggest.h"

#define OPERATOR(NAME) const millrace::Operator& op_##NAME();
#include "generated/operators.inc"
#undef OPERATOR

namespace millrace {
namespace {

const std::vector<const Operator*>& operators() {
  static const std::vector<const Operator*> list = {
#define OPERATOR(NAME) &op_##NAME(),
#include "generated/operators.inc"
#undef OPERATOR
  };
  return list;
}

const std::map<std::string_view, const Operator*>& by_name() {
  static const auto map = [] {
    std::map<std::string_view, const Operator*> m;
    for (const Operator* op : operators()) m[op->name] = op;
    return m;
  }();
  return map;
}

}  // namespace

const Operator* find_operator(std::string_view name) {
  const auto it = by_name().find(name);
  return it == by_name().end() ? nullptr : it->second;
}

const Operator& get_operator(std::string_view name) {
  if (const Operator* op = find_operator(name)) return *op;
  std::vector<std::string> names;
  for (const Operator* op : operators()) names.emplace_back(op->name);
  fail<InputError>("there is no operator '{}'; the nearest is '{}'", name, nearest(name, names));
}

std::span<const Operator* const> all_operators() { return operators(); }

}  // namespace millrace
