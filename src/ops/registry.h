// How an operator's file hands its operator to the list, which is complete or refused.
#pragma once

#include <millrace/operator.h>

/// Defines `const Operator& op_NAME()`: MILLRACE_OPERATOR(add) { Operator op; …; return op; }. CMake finds it
/// by this word in the files of src/ops/, and writes the list that ir/operators.cpp includes.
#define MILLRACE_OPERATOR(NAME)                           \
  static ::millrace::Operator make_##NAME();              \
  const ::millrace::Operator& op_##NAME() {               \
    static const ::millrace::Operator op = make_##NAME(); \
    return op;                                            \
  }                                                       \
  static ::millrace::Operator make_##NAME()
