// Results whose size depends on data: as large as they can be, with how much of them counts beside.
#pragma once

#include "onnx/import/call.h"

namespace millrace::onnx {

struct Chosen {
  Value order;  // i64[n]: first the positions that are chosen, in their order, then 0
  Value count;  // i64[]: how many are chosen
};
/// The positions of a bool[n] that hold.
Chosen chosen(ImportCall& call, Value mask);

}  // namespace millrace::onnx
