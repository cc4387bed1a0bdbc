// How an operator's file hands its operator to the list.
#pragma once

#include <millrace/operator.h>

/// Defines `const Operator& op_NAME()`, which ops/list.inc names: MILLRACE_OPERATOR(add) { Operator op; …; return op; }
#define MILLRACE_OPERATOR(NAME)                           \
  static ::millrace::Operator make_##NAME();              \
  const ::millrace::Operator& op_##NAME() {               \
    static const ::millrace::Operator op = make_##NAME(); \
    return op;                                            \
  }                                                       \
  static ::millrace::Operator make_##NAME()
