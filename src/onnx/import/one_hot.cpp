#include "onnx/import/places.h"

using namespace millrace;

MILLRACE_ONNX_IMPORT(OneHot) {
  const auto depth = static_cast<int64_t>(call.known_number(1));
  if (depth < 0) call.refuse("its depth is negative");
  const int rank = call.rank(0) + 1;
  const int64_t axis = call.axis(call.integer("axis", -1), rank);
  Shape one = call.shape(0), whole = call.shape(0);
  one.insert(one.begin() + axis, Dim(1));
  whole.insert(whole.begin() + axis, Dim(depth));
  const Value indices = counted_from_front(call, call[0], depth);
  const Value place = call.places(whole, axis);
  const Value hot = call.b.binary("equal", place, call.b.reshape(indices, one));
  return {call.b.select(hot, call.element(call[2], 1), call.element(call[2], 0))};
}
