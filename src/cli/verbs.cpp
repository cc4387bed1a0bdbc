// The lists of verbs, as CMake found them.
#include "cli/verbs.h"

#include <algorithm>

namespace millrace::cli {

#define KIND(NAME) extern const Verb NAME##_verb;
#include "generated/verbs.inc"
#undef KIND
#define KIND(NAME) extern const Verb data_##NAME##_verb;
#include "generated/data_verbs.inc"
#undef KIND

namespace {

std::vector<Verb> by_place(std::vector<Verb> list) {
  std::stable_sort(list.begin(), list.end(), [](const Verb& a, const Verb& b) { return a.place < b.place; });
  return list;
}

}  // namespace

const std::vector<Verb>& verbs() {
#define KIND(NAME) NAME##_verb,
  static const std::vector<Verb> list = by_place({
#include "generated/verbs.inc"
  });
#undef KIND
  return list;
}

std::vector<Verb> data_verbs() {
#define KIND(NAME) data_##NAME##_verb,
  return by_place({
#include "generated/data_verbs.inc"
  });
#undef KIND
}

}  // namespace millrace::cli
