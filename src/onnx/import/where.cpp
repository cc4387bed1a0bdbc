#include "onnx/import/call.h"

using namespace millrace;

MILLRACE_ONNX_IMPORT(Where) { return {call.b.select(call[0], call[1], call[2])}; }
