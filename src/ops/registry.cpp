#include "ops/registry.h"

#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/format.h"
#include "base/suggest.h"
#include "ops/check.h"

#define OPERATOR(NAME) const millrace::Operator& op_##NAME();
#include "generated/operators.inc"
#undef OPERATOR

namespace millrace {
namespace {

/// All operators that there are at one time.
struct List {
  std::vector<const Operator*> operators;
  std::map<std::string_view, const Operator*> by_name;
  void append(const Operator& op) {
    operators.push_back(&op);
    by_name[op.name] = &op;
  }
};

/// A registration makes a new list; old ones stay, since somebody may be reading them.
class Registry {
 public:
  Registry() {
    List& list = lists_.emplace_back();
    for (const Operator* op : ops::library_operators()) list.append(*op);
    current_ = &list;
  }
  const List& list() const { return *current_; }
  const Operator& add(Operator op) {
    const std::lock_guard lock(registering_);
    if (list().by_name.contains(op.name)) fail<InputError>("there is an operator '{}' already", op.name);
    const Operator& added = operators_.emplace_back(std::move(op));
    List& list = lists_.emplace_back(*current_);
    list.append(added);
    current_ = &list;
    return added;
  }

 private:
  std::mutex registering_;
  std::deque<Operator> operators_;
  std::deque<List> lists_;
  std::atomic<const List*> current_;
};

Registry& registry() {
  static Registry registry;
  return registry;
}

}  // namespace

std::span<const Operator* const> ops::library_operators() {
  static const std::vector<const Operator*> list = {
#define OPERATOR(NAME) &op_##NAME(),
#include "generated/operators.inc"
#undef OPERATOR
  };
  return list;
}

const Operator& register_operator(Operator op) {
  const Operator* list[] = {&op};
  const std::vector<std::string> missing = missing_parts(list, false);
  if (!missing.empty()) fail<InputError>("the operator is incomplete: {}", fmt::join(missing, "; "));
  return registry().add(std::move(op));
}

const Operator* find_operator(std::string_view name) {
  const auto& by_name = registry().list().by_name;
  const auto it = by_name.find(name);
  return it == by_name.end() ? nullptr : it->second;
}

const Operator& get_operator(std::string_view name) {
  if (const Operator* op = find_operator(name)) return *op;
  std::vector<std::string> names;
  for (const Operator* op : all_operators()) names.emplace_back(op->name);
  fail<InputError>("there is no operator '{}'; the nearest is '{}'", name, nearest(name, names));
}

std::span<const Operator* const> all_operators() { return registry().list().operators; }

}  // namespace millrace
