// A given operator, for rewrites that are about that one and no property tells it. tools/lint_op_names.py
// lists them all.
#pragma once

#include <string_view>

#include <millrace/operator.h>

namespace millrace::ops {

inline bool is(const Node& node, std::string_view op) { return node.op->name == op; }

}  // namespace millrace::ops
