#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(trunc) { return ops::rounding("trunc", "x rounded toward zero", ScalarOp::trunc); }
