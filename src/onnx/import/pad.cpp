#include <algorithm>

#include "onnx/import/bounded.h"

using namespace millrace;
using onnx::Ints;
using onnx::Item;

namespace {

/// Positions of the result in the operand, along one axis, for a mode other than constant.
Ints mirrored(onnx::ImportCall& call, int64_t size, int64_t before, int64_t behind, const std::string& mode) {
  Ints places;
  if (size < 1) call.refuse("nothing cannot be repeated");
  for (int64_t i = -before; i < size + behind; ++i) {
    if (mode == "edge") {
      places.push_back(std::clamp<int64_t>(i, 0, size - 1));
    } else if (mode == "wrap") {
      places.push_back(((i % size) + size) % size);
    } else {
      const int64_t period = std::max<int64_t>(1, 2 * (size - 1)), at = ((i % period) + period) % period;
      places.push_back(at < size ? at : period - at);
    }
  }
  return places;
}

/// A tensor with what it holds again around it.
Value repeated(onnx::ImportCall& call, Value x, const Ints& before, const Ints& behind,
               const std::string& mode) {
  const Ints sizes = call.b.shape(x).sizes();
  const size_t rank = sizes.size();
  const auto grows = [&](size_t d) { return before[d] > 0 || behind[d] > 0; };
  const auto places = [&](size_t d) {
    return grows(d) ? mirrored(call, sizes[d], before[d], behind[d], mode) : onnx::numbered(0, sizes[d]);
  };
  size_t first = 0, end = rank;  // axes that grow, and those between them
  while (first < end && !grows(first)) ++first;
  while (first < end && !grows(end - 1)) --end;
  if (first == end) return x;
  constexpr int64_t most = 1 << 20;  // places, which are to be read, too
  Shape joined, result;
  int64_t count = 1;
  for (size_t d = 0; d < rank; ++d) {
    const int64_t size = sizes[d] + before[d] + behind[d];
    result.emplace_back(size);
    if (d > first && d < end)
      joined[first] = joined[first].size() * sizes[d];
    else
      joined.emplace_back(sizes[d]);
    if (d >= first && d < end) count = size > 0 && count > most / size ? most + 1 : count * size;
  }
  if (count > most) {
    for (size_t d = end; d-- > first;)
      if (grows(d)) x = call.gather(x, call.ints_constant(places(d)), static_cast<int64_t>(d));
    return x;
  }
  // All axes at once: each element is moved only once.
  Ints flat{0};
  for (size_t d = first; d < end; ++d) {
    Ints finer;
    const Ints along = places(d);
    for (const int64_t from : flat)
      for (const int64_t at : along) finer.push_back(from * sizes[d] + at);
    flat = std::move(finer);
  }
  Array at(i32, {count});
  std::copy(flat.begin(), flat.end(), at.as<int32_t>().begin());
  return call.b.reshape(
      call.gather(call.b.reshape(x, joined), call.constant(at), static_cast<int64_t>(first)), result);
}

/// One axis is padded by what is known when the model runs, or its own size is.
onnx::Items padded_at_run_time(onnx::ImportCall& call) {
  const onnx::ImportCall::Said said = call.sizes_said(1);
  Item x = call.item(0);
  const int rank = call.b.shape(x.value).rank();
  std::optional<Ints> axes;
  if (call.given(3)) axes = call.known_ints(3);
  const size_t count = axes ? axes->size() : static_cast<size_t>(rank);
  if (said.most.size() != 2 * count) call.refuse("it needs two numbers for each axis");
  if (call.text("mode", "constant") != "constant")
    call.refuse_sizes("how much it pads depends on data, and it pads by more than a value");
  const double value = call.given(2) ? call.known_number(2) : 0;
  for (size_t i = 0; i < count; ++i) {
    const int64_t axis = axes ? call.axis((*axes)[i], rank) : static_cast<int64_t>(i);
    if (said.known(i) && said.known(count + i) && said.most[i] == 0 && said.most[count + i] == 0) continue;
    if (said.least[i] < 0 || said.least[count + i] < 0)
      call.refuse_sizes("it may take away, by what depends on data");
    const bool known = said.known(i) && said.known(count + i);
    if (x.bounded_axis >= 0 && x.bounded_axis != axis && !known) call.refuse_two_sizes();
    const auto filling = [&](int64_t size) {
      Shape shape = call.b.shape(x.value);
      shape[static_cast<size_t>(axis)] = size;
      return call.b.broadcast(call.scalar(call.b.dtype(x.value), value), shape);
    };
    const std::vector<Value> parts = {filling(said.most[i]), x.value, filling(said.most[count + i])};
    if (known && x.bounded_axis != axis) {
      x.value = call.concat(parts, axis);
      continue;
    }
    const int64_t size = call.b.shape(x.value)[static_cast<size_t>(axis)].size();
    x = onnx::joined(call, parts,
                     {call.element(said.values, static_cast<int64_t>(i)),
                      x.bounded_axis == axis ? x.size : call.whole(size),
                      call.element(said.values, static_cast<int64_t>(count + i))},
                     axis);
  }
  return {x};
}

}  // namespace

MILLRACE_ONNX_IMPORT(Pad) {
  const bool old = call.opset < 11;
  if (!old && (call.bounded(0) || call.item(1).between)) return padded_at_run_time(call);
  const std::string mode = call.text("mode", "constant");
  const Ints given = old ? call.ints("pads") : call.known_ints(1);
  const auto rank = static_cast<size_t>(call.rank(0));
  Ints before(rank, 0), behind(rank, 0);
  std::optional<Ints> axes;
  if (call.given(3)) axes = call.known_ints(3);
  const size_t count = axes ? axes->size() : rank;
  if (given.size() != 2 * count) call.refuse("it needs two numbers for each axis");
  for (size_t i = 0; i < count; ++i) {
    const auto d = axes ? static_cast<size_t>(call.axis((*axes)[i], call.rank(0))) : i;
    before[d] = given[i];
    behind[d] = given[count + i];
  }
  // What is negative is taken away.
  Value x = call[0];
  Ints sizes = call.shape(0).sizes(), starts(rank, 0), ends = sizes;
  for (size_t d = 0; d < rank; ++d) {
    starts[d] = std::max<int64_t>(0, -before[d]);
    ends[d] = sizes[d] - std::max<int64_t>(0, -behind[d]);
    if (starts[d] > ends[d]) call.refuse("it takes away more than there is");
    before[d] = std::max<int64_t>(0, before[d]);
    behind[d] = std::max<int64_t>(0, behind[d]);
  }
  if (starts != Ints(rank, 0) || ends != sizes)
    x = call.graph.add("slice", {x}, {{"starts", starts}, {"ends", ends}});
  if (mode == "constant") {
    double value = old ? call.number("value", 0) : 0;
    if (call.given(2)) value = call.known_number(2);
    return {call.graph.add("pad", {x}, {{"low", before}, {"high", behind}, {"value", value}})};
  }
  return {repeated(call, x, before, behind, mode)};
}
