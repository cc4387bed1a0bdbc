// Results whose size depends on data: as large as they can be, with how much of them counts beside.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "onnx/import/call.h"

namespace millrace::onnx {

struct Chosen {
  Value order;  // i64[n]: first the positions that are chosen, in their order, then 0
  Value count;  // i64[]: how many are chosen
};
/// The positions of a bool[n] that hold.
Chosen chosen(ImportCall& call, Value mask);

/// Each position along an axis with all that lie before it ("add", "mul"; `neutral` changes nothing), or
/// behind it.
Value running(ImportCall& call, std::string_view op, Value x, int64_t axis, double neutral, bool reverse);

/// bool of a shape: whether a position along an axis counts, `size` (i64[]) being how many do.
Value counts(ImportCall& call, const Shape& shape, int64_t axis, Value size);
/// x with `value` where a position along an axis does not count.
Value masked(ImportCall& call, Value x, int64_t axis, Value size, double value);
/// The least and the largest value of a dtype.
double lowest(DType dtype);
double highest(DType dtype);

/// Tensors one behind the other along an axis, of which `sizes` (i64[]) count.
Item joined(ImportCall& call, const std::vector<Value>& parts, const std::vector<Value>& sizes, int64_t axis);

/// Positions start, start + step … of an axis of which `size` count, before `end`, by numpy's rules. At most
/// `most` of them are there.
struct Picked {
  Value start, end;  // i64[]
  int64_t step = 1, most = 0;
};
Item picked(ImportCall& call, Value x, int64_t axis, Value size, const Picked& which);

/// A tensor's elements in the shape that is said, of which one size may depend on data: that of the tensor,
/// or what is said.
Item reshaped(ImportCall& call, const Item& item, const ImportCall::Said& said);

/// A tensor as large as is said along axes where it is 1, or lacks them; one size may depend on data.
Item expanded(ImportCall& call, const Item& item, const ImportCall::Said& said);

/// A rule run for operands of which some have sizes that depend on data: where the operator treats all
/// positions alike, or those that do not count can be made to change nothing. Else the rule as it is.
/// `elementwise`: each element of the result is made of those at its place.
Items carried(ImportCall& call, const std::function<Items(ImportCall&)>& run, bool elementwise);

/// Whether an operator's results grow where its operands do, or fall where these grow that falls() names:
/// then bounds of these are bounds of them.
bool grows(ImportCall& call);
bool falls(const ImportCall& call, int k);

}  // namespace millrace::onnx
