#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(greater) { return ops::comparison("greater", "a > b", ScalarOp::greater, "Greater"); }
