#include "onnx/import/call.h"

using namespace millrace;

/// A cache with its newest elements written from an index on, one for each of the first axis.
MILLRACE_ONNX_IMPORT(TensorScatter) {
  const Shape shape = call.shape(0), own = call.shape(1);
  const int rank = shape.rank();
  const int64_t axis = call.axis(call.integer("axis", -2), rank);
  const auto a = static_cast<size_t>(axis);
  Shape like = own;
  if (own.rank() != rank || axis == 0) call.refuse("its update does not fit its cache");
  like[a] = shape[a];
  if (like != shape || own[a].size() > shape[a].size() || own[a].size() < 1)
    call.refuse("its update does not fit its cache");
  const int64_t size = shape[a].size(), many = own[a].size();
  Value at = call.places(shape, axis);
  if (call.given(2)) {
    Shape one(static_cast<size_t>(rank), Dim(1));
    one[0] = shape[0];
    at = call.b.sub(at, call.b.broadcast(call.b.reshape(call.b.cast(call[2], i64), one), shape));
  }
  const std::string mode = call.text("mode", "linear");
  if (mode == "circular")
    at = call.b.binary("rem", call.b.add(at, static_cast<double>(size)),
                       call.fill(at, static_cast<double>(size)));
  else if (mode != "linear")
    call.refuse("the mode '" + mode + "' is not known");
  const Value inside = call.graph.add("logical_and", {call.compare("greater_equal", at, 0),
                                                      call.compare("less", at, static_cast<double>(many))});
  at = call.clamp(at, 0, static_cast<double>(many - 1));
  Value flat;
  int64_t stride = 1;
  for (int d = rank - 1; d >= 0; --d) {
    const Value place = d == axis ? at : call.places(shape, d);
    const Value part = call.b.mul(place, static_cast<double>(stride));
    flat = flat.valid() ? call.b.add(flat, part) : part;
    stride *= own[static_cast<size_t>(d)].size();
  }
  const Value fresh = call.gather(call.b.reshape(call[1], {own.count()}), flat, 0);
  return {call.b.select(inside, fresh, call[0])};
}
