#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include "onnx/import/call.h"
#include "ops/cond.h"

using namespace millrace;

namespace {

using onnx::Item;
using onnx::Items;
using Form = onnx::Item::Form;

/// The results of both branches made alike, since a cond's have one type each: where they differ in one size
/// they become as large as the larger, with the size beside.
struct Branches {
  Graph& graph;
  std::vector<Value> first, other;

  void add_size(const Item& item, int axis, std::vector<Value>& to) {
    const int64_t size = graph.type(item.value).shape[static_cast<size_t>(axis)].size();
    to.push_back(item.bounded_axis >= 0 ? item.size : graph.scalar(i64, static_cast<double>(size)));
  }

  void add_padded(const Item& item, const Shape& shape, std::vector<Value>& to) {
    const std::vector<int64_t> sizes = graph.type(item.value).shape.sizes(), wanted = shape.sizes();
    std::vector<int64_t> low(sizes.size(), 0), high;
    for (size_t d = 0; d < sizes.size(); ++d) high.push_back(wanted[d] - sizes[d]);
    to.push_back(sizes == wanted ? item.value
                                 : graph.add("pad", {item.value}, {{"low", low}, {"high", high}}));
  }

  /// Nothing beside another shape, as merged decoders give it for a cache that they do not make: it becomes
  /// as large as the other but along an axis where it has no places. `before`: it is the first branch's.
  bool add_nothing(const Item& nothing, const Item& other_one, bool before, Item& mould) {
    const std::vector<int64_t> sizes = graph.type(nothing.value).shape.sizes();
    const auto axis = static_cast<int>(std::find(sizes.begin(), sizes.end(), 0) - sizes.begin());
    if (other_one.bounded_axis >= 0 && other_one.bounded_axis != axis) return false;
    auto &mine = before ? first : other, &theirs = before ? other : first;
    mine.push_back(ops::Build(graph).zeros(other_one.value));
    mine.push_back(graph.scalar(i64, 0));
    theirs.push_back(other_one.value);
    add_size(other_one, axis, theirs);
    mould.bounded_axis = axis;
    return true;
  }

  /// What stands for either, without its values; false where nothing can.
  bool add(const Item& one, const Item& two, Item& mould) {
    if (one.form != two.form) return false;
    mould = Item{};
    mould.form = one.form;
    if (one.form == Form::texts) {
      mould.texts = one.texts;
      return one.texts->shape == two.texts->shape && one.texts->values == two.texts->values;
    }
    if (one.form == Form::sequence) {
      if (one.items->size() != two.items->size()) return false;
      std::vector<Item> items(one.items->size());
      for (size_t i = 0; i < items.size(); ++i)
        if (!add((*one.items)[i], (*two.items)[i], items[i])) return false;
      mould = Item::of(std::move(items));
      return true;
    }
    if (one.form != Form::tensor) return true;
    const Type a = graph.type(one.value), b = graph.type(two.value);
    if (a.dtype != b.dtype || a.shape.rank() != b.shape.rank()) return false;
    const bool none = a.shape.count() == 0 && one.bounded_axis < 0;
    if (a.shape != b.shape && (none || (b.shape.count() == 0 && two.bounded_axis < 0)))
      return add_nothing(none ? one : two, none ? two : one, none, mould);
    Shape larger = a.shape;
    std::vector<int> axes;
    for (const int axis : {one.bounded_axis, two.bounded_axis})
      if (axis >= 0) axes.push_back(axis);
    for (int d = 0; d < a.shape.rank(); ++d) {
      const auto at = static_cast<size_t>(d);
      if (a.shape[at] == b.shape[at]) continue;
      larger[at] = std::max(a.shape[at].size(), b.shape[at].size());
      axes.push_back(d);
    }
    if (!axes.empty() && std::count(axes.begin(), axes.end(), axes[0]) != std::ssize(axes)) return false;
    add_padded(one, larger, first);
    add_padded(two, larger, other);
    if (axes.empty()) return true;
    mould.bounded_axis = axes[0];
    add_size(one, axes[0], first);
    add_size(two, axes[0], other);
    return true;
  }
};

/// What stands for a branch that cannot be written, as the other one's results are: they are refused where it
/// is taken. nullopt where that cannot be.
std::optional<Items> refused(onnx::ImportCall& call, Graph& graph, bool then, const Items& other,
                             const std::string& why) {
  Value taken = ops::Build(graph).reshape(call.nested.look_up(call.node.inputs[0]).value, {});
  if (!then) taken = graph.add("logical_not", {taken});
  Items items;
  for (const Item& item : other) {
    if (item.form != Form::tensor) return std::nullopt;
    const Type type = graph.type(item.value);
    const Value value =
        graph.add("refuse", {taken}, {{"message", why}, {"shape", type.shape}, {"dtype", type.dtype}});
    items.push_back(item.bounded_axis < 0 ? Item(value) : Item::bounded(value, item.bounded_axis, item.size));
  }
  return items;
}

/// The results of both branches. One that cannot be written, be it only for these sizes, is no reason to
/// refuse the other: exporters merge models for different inputs in this way.
std::pair<Items, Items> both_branches(onnx::ImportCall& call, Graph& graph, const onnx::GraphProto& then,
                                      const onnx::GraphProto& otherwise) {
  std::exception_ptr error;
  std::string why;
  const auto written = [&](const onnx::GraphProto& branch) -> std::optional<Items> {
    try {
      return call.nested.inline_nested(branch, {});
    } catch (const onnx::UnknownInputs&) {
      throw;  // a loop around it may be written out, where they are known
    } catch (const InputError& e) {
      if (error || call.learning) throw;
      error = std::current_exception();
      why = e.what();
      return std::nullopt;
    }
  };
  std::optional<Items> one = written(then), two = written(otherwise);
  if (!one) one = refused(call, graph, true, *two, why);
  if (!two) two = refused(call, graph, false, *one, why);
  if (!one || !two) std::rethrow_exception(error);
  return {*one, *two};
}

/// The mould, with the cond's results from `next` on.
Item filled(const Item& mould, Value& next) {
  const auto take = [&] {
    const Value now = next;
    ++next.output;
    return now;
  };
  if (mould.form == Form::tensor) {
    const Value value = take();
    return mould.bounded_axis < 0 ? Item(value) : Item::bounded(value, mould.bounded_axis, take());
  }
  if (mould.form != Form::sequence) return mould;
  std::vector<Item> items;
  for (const Item& each : *mould.items) items.push_back(filled(each, next));
  return Item::of(std::move(items));
}

}  // namespace

/// Where the condition is known, its branch; else a cond.
MILLRACE_ONNX_IMPORT(If) {
  const onnx::AttributeProto &then = call.attribute("then_branch"),
                             &otherwise = call.attribute("else_branch");
  if (!then.graph || !otherwise.graph) call.refuse("it lacks a branch");
  if (call.shape(0).count() != 1) call.refuse("its condition is not one value");
  if (const Array* known = call.known(0))
    return call.nested.inline_nested(known->at(0) != 0 ? *then.graph : *otherwise.graph, {});
  const Value condition = call.b.reshape(call[0], {});
  std::vector<Item> moulds;
  bool alike = true;
  onnx::ControlBody body = call.nested.body_of({}, [&](Graph& graph, std::span<const Value>) {
    const auto [one, two] = both_branches(call, graph, *then.graph, *otherwise.graph);
    if (one.size() != two.size()) call.refuse("its branches give different numbers of values");
    Branches branches{graph, {}, {}};
    moulds.resize(one.size());
    for (size_t i = 0; i < one.size(); ++i) alike = alike && branches.add(one[i], two[i], moulds[i]);
    if (!alike) return std::vector<Value>{};
    std::vector<Value> outputs = branches.first;
    outputs.insert(outputs.end(), branches.other.begin(), branches.other.end());
    return outputs;
  });
  if (!alike)
    throw onnx::UnknownInputs(
        "its branches give values of different types, and which one is not known before the model runs",
        onnx::inputs_behind(call.graph, {condition}));
  Value next;
  if (!body.graph->outputs().empty())
    next = ops::add_cond(call.graph, condition, body.captured, std::move(body.graph));
  onnx::Items results;
  for (const Item& mould : moulds) results.push_back(filled(mould, next));
  return results;
}
