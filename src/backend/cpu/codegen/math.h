// Elementary functions as expressions: polynomials for f32, the C library's functions for f64.
#pragma once

#include "backend/cpu/codegen/dag.h"

namespace millrace::codegen {

/// exp, log, sin, cos, tanh, erf or sigmoid of an f32 or f64 expression. Special values as in C.
int elementary(Dag& dag, ScalarOp op, int x);
/// pow or rem (fmod) of f32 or f64 expressions.
int elementary_binary(Dag& dag, ScalarOp op, int x, int y);

}  // namespace millrace::codegen
