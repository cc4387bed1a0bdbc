#include "onnx/import/places.h"

namespace millrace::onnx {

Value counted_from_front(ImportCall& call, Value indices, int64_t size) {
  return counted_from_front(call, indices, call.scalar(i64, static_cast<double>(size)));
}

Value counted_from_front(ImportCall& call, Value indices, Value size) {
  const Value wide = call.b.cast(indices, i64);
  return call.b.select(call.compare("less", wide, 0), call.b.add(wide, size), wide);
}

Value places_of_elements(ImportCall& call, int64_t axis) {
  const Shape shape = call.shape(1);
  const Ints sizes = call.shape(0).sizes();
  Value flat = call.b.broadcast(call.scalar(i64, 0), shape);
  int64_t stride = 1;
  for (int d = call.rank(0) - 1; d >= 0; --d) {
    const int64_t size = sizes[static_cast<size_t>(d)];
    const Value at = d == axis ? counted_from_front(call, call[1], size) : call.places(shape, d);
    flat = call.b.add(flat, call.b.mul(at, static_cast<double>(stride)));
    stride *= size;
  }
  return flat;
}

Value turned_round(ImportCall& call, Value x, int64_t axis) {
  Ints order;
  for (int64_t i = call.b.shape(x)[static_cast<size_t>(axis)].size() - 1; i >= 0; --i) order.push_back(i);
  return call.gather(x, call.ints_constant(order), axis);
}

}  // namespace millrace::onnx
