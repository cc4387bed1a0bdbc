// What tensors of other programs' files are called here.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/array.h>

namespace millrace::track {

/// "encoder.layer.*.attention.self.query.* blocks.*.qkv.* 1/3": a pattern of their names, the name here, and
/// where a tensor here is put together from several of theirs, one below the other, which of how many it is;
/// "transposed" behind it where rows here are columns there. A * stands for letters without a dot, a last one
/// for all that follows; the name here has as many, or fewer.
struct NameRule {
  std::string text, from, to;
  int64_t part = 1, parts = 1;
  bool transposed = false;

  /// What that name is here; nothing where the rule is not about it.
  std::optional<std::string> target(std::string_view name) const;
};
/// InputError, worded to follow a colon.
NameRule parse_name_rule(const std::string& text);
/// The first of the rules that is about that name, and what it makes of it; null where none is.
struct Renamed {
  const NameRule* rule = nullptr;
  std::string name;
};
Renamed renamed(std::string_view name, std::span<const NameRule> rules);

/// Tensors under their names here, put together and transposed; those that no rule is about as they are.
/// InputError where two become the same, a part is missing, parts do not fit, or what is to be transposed is
/// no matrix.
std::map<std::string, Array> rename_tensors(const std::map<std::string, Array>& tensors,
                                            std::span<const NameRule> rules);

}  // namespace millrace::track
