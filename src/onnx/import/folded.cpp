#include "onnx/import/folded.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <millrace/operator.h>

#include "ir/first_along.h"
#include "onnx/import/bounded.h"
#include "runtime/constant_graph.h"

namespace millrace::onnx {
namespace {

/// Constants that are computed while importing are no larger than this many elements.
constexpr int64_t kFolded = int64_t{1} << 24;

bool little_work(const Graph& graph) {
  constexpr double most = 2e8;
  for (int i = 0; i < graph.size(); ++i)
    for (const Type& type : graph.node(i).types)
      if (type.shape.count() > kFolded) return false;
  return work_of(graph) <= most;
}

void collect(const Item& item, std::vector<Value>& outputs) {
  if (item.form == Item::Form::tensor) outputs.push_back(item.value);
  if (item.bounded_axis >= 0) outputs.push_back(item.size);
  if (item.items)
    for (const Item& each : *item.items) collect(each, outputs);
}

Item as_constant(Graph& graph, const Item& item, const std::vector<Array>& arrays, size_t& at) {
  if (item.form == Item::Form::tensor) {
    const Array& whole = arrays[at++];
    if (item.bounded_axis < 0) return graph.constant(whole);
    return graph.constant(first_along(whole, item.bounded_axis, arrays[at++].int_at(0)));
  }
  if (item.form != Item::Form::sequence) return item;
  std::vector<Item> items;
  for (const Item& each : *item.items) items.push_back(as_constant(graph, each, arrays, at));
  return Item::of(std::move(items));
}

/// Whether numbers are equal, where their bounds tell for all of them.
std::optional<Array> decided(const std::vector<Item::Between>& sides, const Shape& shape) {
  if (sides.size() != 2) return std::nullopt;
  const Array &a = sides[0].least, &b = sides[1].least;
  if (a.count() != 1 && b.count() != 1 && a.shape() != b.shape()) return std::nullopt;
  Array equal(boolean, shape);
  for (int64_t i = 0; i < equal.count(); ++i) {
    const int64_t of_a = a.count() == 1 ? 0 : i, of_b = b.count() == 1 ? 0 : i;
    const int64_t low = a.int_at(of_a), high = sides[0].most.int_at(of_a), other_low = b.int_at(of_b),
                  other_high = sides[1].most.int_at(of_b);
    const bool apart = high < other_low || other_high < low;
    if (!apart && (low != high || other_low != other_high)) return std::nullopt;
    equal.set(i, !apart);
  }
  return equal;
}

}  // namespace

bool all_known(const Graph& graph, const Items& operands) {
  return std::all_of(operands.begin(), operands.end(), [&](const Item& item) {
    if (!item.is_something()) return true;
    const Array* array = item.form == Item::Form::tensor ? graph.constant_value(item.value) : nullptr;
    return array && array->count() <= kFolded && item.bounded_axis < 0;
  });
}

std::optional<Items> folded(Graph& graph, const Items& operands, const WriteNode& write) {
  Graph scratch;
  Items copies;
  for (const Item& item : operands)
    copies.push_back(item.is_something() ? Item(scratch.constant(*graph.constant_value(item.value)))
                                         : Item{});
  const Items results = write(scratch, std::move(copies));
  if (!little_work(scratch)) return std::nullopt;
  std::vector<Value> outputs;
  for (const Item& item : results) collect(item, outputs);
  scratch.set_outputs(outputs);
  const std::vector<Array> arrays = evaluate_constant_graph(scratch);
  Items constants;
  size_t at = 0;
  for (const Item& item : results) constants.push_back(as_constant(graph, item, arrays, at));
  return constants;
}

void add_bounds(ImportCall& call, Items& results, const WriteNode& write) {
  const auto has_bounds = [](const Item& item) { return item.between != nullptr; };
  if (std::none_of(call.items().begin(), call.items().end(), has_bounds)) return;
  Items least = call.items(), most = call.items();
  std::vector<Item::Between> sides;
  for (int k = 0; k < call.count(); ++k) {
    if (!call.given(k)) continue;
    const auto at = static_cast<size_t>(k);
    const Item& item = call.item(k);
    if (item.form != Item::Form::tensor || item.bounded_axis >= 0) return;
    const Array* known = call.graph.constant_value(item.value);
    if (!item.between && !known) return;
    if (known && known->count() > kSmallConstant) return;
    const auto negative = [](const Array& array) {
      for (int64_t i = 0; i < array.count(); ++i)
        if (array.at(i) < 0) return true;
      return false;
    };
    // Of products and quotients, what is below 0 turns bounds round.
    const bool product = call.node.op_type == "Mul" || call.node.op_type == "ReduceProd";
    if (product && negative(item.between ? item.between->least : *known)) return;
    sides.push_back(item.between ? *item.between : Item::Between{*known, *known});
    least[at].value = call.graph.constant(sides.back().least);
    most[at].value = call.graph.constant(sides.back().most);
    if (falls(call, k)) std::swap(least[at].value, most[at].value);
  }
  if (call.node.op_type == "Equal" && call.node.domain.empty())
    if (const auto equal = decided(sides, call.graph.type(results[0].value).shape))
      results[0] = Item(call.graph.constant(*equal));
  if (!grows(call)) return;
  const std::optional<Items> low = folded(call.graph, least, write), high = folded(call.graph, most, write);
  if (!low || !high) return;
  for (size_t i = 0; i < results.size(); ++i) {
    const Array *const a = call.graph.constant_value(low->at(i).value), *const b = call.graph.constant_value(
                                                                            high->at(i).value);
    if (results[i].form != Item::Form::tensor || !a || !b || a->type() != b->type() || is_real(a->dtype()))
      continue;
    if (a->identical(*b))
      results[i] = Item(high->at(i).value);
    else
      results[i].between = std::make_shared<const Item::Between>(*a, *b);
  }
}

}  // namespace millrace::onnx
