#include "onnx/import/call.h"

using namespace millrace;
using onnx::Ints;

MILLRACE_ONNX_IMPORT(Identity) { return {call[0]}; }
