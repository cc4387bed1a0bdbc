// Numbers that are names of classes, not amounts.
#pragma once

#include "check/check.h"
#include "check/columns.h"

namespace millrace::check {

/// Are the numbers that are to be predicted few whole ones, one after the other, whose order says nothing of
/// the inputs? It passes what look like amounts, and where inputs tell nothing.
Finding judge_codes(const Context& context, const Targets& targets);

}  // namespace millrace::check
