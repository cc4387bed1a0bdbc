#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(less) { return ops::comparison("less", "a < b", ScalarOp::less, "Less"); }
