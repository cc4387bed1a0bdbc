#include <algorithm>
#include <map>

#include "onnx/import/call.h"

#define KIND(NAME) const ::millrace::onnx::ImportRule& onnx_import_##NAME();
#include "generated/onnx_imports.inc"
#undef KIND

namespace millrace::onnx {
namespace {

/// ONNX's name: a rule's may have its domain in front, with _ for each dot.
std::string with_domain(std::string_view name) {
  for (const std::string_view domain : {"ai.onnx.ml.", "ai.onnx.preview.training.", "ai.onnx.preview."}) {
    std::string prefix(domain);
    std::replace(prefix.begin(), prefix.end(), '.', '_');
    if (name.starts_with(prefix)) return std::string(domain) + std::string(name.substr(prefix.size()));
  }
  return std::string(name);
}

const std::map<std::string, const ImportRule*, std::less<>>& rules() {
  static const std::map<std::string, const ImportRule*, std::less<>> all = [] {
    std::map<std::string, const ImportRule*, std::less<>> found;
    for (const ImportRule* rule : {
#define KIND(NAME) &onnx_import_##NAME(),
#include "generated/onnx_imports.inc"
#undef KIND
         })
      found.emplace(with_domain(rule->name), rule);
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
