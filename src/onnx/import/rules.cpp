#include <map>

#include "onnx/import/call.h"

#define KIND(NAME) const ::millrace::onnx::ImportRule& onnx_import_##NAME();
#include "generated/onnx_imports.inc"
#undef KIND

namespace millrace::onnx {
namespace {

const std::map<std::string_view, const ImportRule*>& rules() {
  static const std::map<std::string_view, const ImportRule*> all = [] {
    std::map<std::string_view, const ImportRule*> found;
    for (const ImportRule* rule : {
#define KIND(NAME) &onnx_import_##NAME(),
#include "generated/onnx_imports.inc"
#undef KIND
         })
      found.emplace(rule->name, rule);
    return found;
  }();
  return all;
}

}  // namespace

const ImportRule* find_import_rule(std::string_view name) {
  const auto found = rules().find(name);
  return found == rules().end() ? nullptr : found->second;
}

std::vector<std::string> import_rule_names() {
  std::vector<std::string> names;
  for (const auto& [name, rule] : rules()) names.emplace_back(name);
  return names;
}

}  // namespace millrace::onnx
