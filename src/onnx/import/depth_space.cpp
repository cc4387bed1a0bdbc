#include "onnx/import/call.h"

using namespace millrace;
using onnx::Ints;

MILLRACE_ONNX_IMPORT(DepthToSpace) {
  const Ints s = call.shape(0).sizes();
  const int64_t block = call.integer("blocksize");
  if (s.size() != 4 || block < 1 || s[1] % (block * block) != 0)
    call.refuse("its channels do not make blocks");
  const int64_t c = s[1] / (block * block);
  const bool columns = call.text("mode", "DCR") == "CRD";
  const Value apart = call.b.reshape(
      call[0], columns ? Shape{s[0], c, block, block, s[2], s[3]} : Shape{s[0], block, block, c, s[2], s[3]});
  const Value turned = call.b.transpose(apart, columns ? Ints{0, 1, 4, 2, 5, 3} : Ints{0, 3, 4, 1, 5, 2});
  return {call.b.reshape(turned, {s[0], c, s[2] * block, s[3] * block})};
}

MILLRACE_ONNX_IMPORT(SpaceToDepth) {
  const Ints s = call.shape(0).sizes();
  const int64_t block = call.integer("blocksize");
  if (s.size() != 4 || block < 1 || s[2] % block != 0 || s[3] % block != 0)
    call.refuse("its pictures do not make blocks");
  const Value apart = call.b.reshape(call[0], {s[0], s[1], s[2] / block, block, s[3] / block, block});
  return {call.b.reshape(call.b.transpose(apart, {0, 3, 5, 1, 2, 4}),
                         {s[0], s[1] * block * block, s[2] / block, s[3] / block})};
}
