#include <algorithm>
#include <cstdint>
#include <utility>

#include <millrace/tensor.h>

#include "base/format.h"
#include "onnx/import/call.h"
#include "ops/scan.h"

using namespace millrace;
using onnx::Ints;
using onnx::Item;
using onnx::Items;

namespace {

constexpr int64_t kMostSteps = 1024;  // that are written one after the other

/// What the steps gave, one above the other.
Value one_above_other(onnx::ImportCall& call, const Items& steps) {
  std::vector<Value> slices;
  for (const Item& each : steps) {
    if (each.form != Item::Form::tensor || each.bounded_axis >= 0)
      call.refuse("it stacks what are no tensors of a known size");
    slices.push_back(each.value);
  }
  return call.stacked(slices, 0);
}

class LoopRule {
 public:
  explicit LoopRule(onnx::ImportCall& call) : call_(call), body_(call.attribute("body").graph) {
    if (!body_) call.refuse("it lacks its body");
    if (call.given(0) && call.shape(0).count() != 1) call.refuse("its number of steps is no number");
    if (call.given(1) && call.shape(1).count() != 1) call.refuse("whether it goes on is not one value");
    if (!call.given(0))
      limit_ = INT64_MAX;
    else if (call.known(0))
      most_ = limit_ = std::max<int64_t>(call.known_int(0), 0);
    else if (call.item(0).between)
      most_ = std::max<int64_t>(call.sizes_said(0).most[0], 0);
    for (int k = 2; k < call.count(); ++k) first_.push_back(call.given(k) ? call.item(k) : Item::empty());
    if (body_->outputs.size() < 1 + first_.size()) call.refuse("its body gives too few values");
    stacks_ = body_->outputs.size() - 1 - first_.size();
    grows_.resize(first_.size());
    for (size_t k = 0; k < first_.size(); ++k) grows_[k].axis = first_[k].bounded_axis;
  }

  Items run() {
    if (limit_)
      if (std::optional<Items> results = written_out()) return std::move(*results);
    try {
      return in_graph();
    } catch (const onnx::UnknownInputs& e) {
      // Its course may be known where its inputs are.
      std::vector<std::string> inputs = e.inputs;
      std::vector<Value> operands;
      for (const Item& item : call_.items())
        if (item.form == Item::Form::tensor) operands.push_back(item.value);
      for (std::string& name : onnx::inputs_behind(call_.graph, operands))
        if (std::find(inputs.begin(), inputs.end(), name) == inputs.end()) inputs.push_back(std::move(name));
      throw onnx::UnknownInputs(e.what(), std::move(inputs), e.inputs_told);
    }
  }

 private:
  /// Step after step, where it is known how many there are; nullopt where it is not, or there are too many.
  std::optional<Items> written_out() {
    Items carried = first_;
    std::vector<Items> given(stacks_);
    Item going = call_.given(1) ? call_.item(1) : Item(call_.scalar(boolean, 1));
    for (int64_t step = 0; step < *limit_; ++step) {
      if (going.form != Item::Form::tensor) call_.refuse("whether it goes on is said by no tensor");
      const Array* go = call_.graph.constant_value(going.value);
      if (!go || go->count() != 1) return std::nullopt;
      if (go->at(0) == 0) break;
      if (step == kMostSteps) return std::nullopt;
      Items arguments{call_.whole(step), going};
      arguments.insert(arguments.end(), carried.begin(), carried.end());
      const Items results = call_.nested.inline_nested(*body_, arguments);
      going = results[0];
      for (size_t i = 0; i < carried.size(); ++i) carried[i] = results[1 + i];
      for (size_t i = 0; i < stacks_; ++i) given[i].push_back(results[1 + carried.size() + i]);
    }
    for (const Items& steps : given) {
      if (steps.empty()) {  // the body says of what shape they would be
        limit_ = 0;
        return std::nullopt;
      }
      carried.emplace_back(one_above_other(call_, steps));
    }
    return carried;
  }

  /// It may be written out where more is known.
  [[noreturn]] static void unknown(const std::string& what) {
    throw onnx::UnknownInputs("how often it runs is not known before the model runs, and " + what, {});
  }

  /// What is carried, as large as it can become, and how large it is.
  struct Growth {
    int axis = -1;     // -1: of one size
    int64_t each = 0;  // more in a step, at most
  };

  static int64_t size_along(const Type& type, int axis) {
    return type.shape[static_cast<size_t>(axis)].size();
  }

  /// One that grows has room for all steps.
  Value with_room(const Item& item, const Growth& growth, const std::string& name) {
    if (item.form != Item::Form::tensor) unknown(fmt::format("'{}', which it carries, is no tensor", name));
    if (growth.each == 0) return item.value;
    constexpr int64_t most_steps = int64_t{1} << 20;
    constexpr int64_t most_places = int64_t{1} << 40;
    if (!most_ || *most_ > most_steps || growth.each > most_places / std::max<int64_t>(*most_, 1))
      unknown(fmt::format(
          "'{}', which it carries, grows by {} along axis {} in a step: give the loop a number of "
          "steps that is known, at most {}, so that there can be room for it",
          name, growth.each, growth.axis, most_steps));
    return *most_ == 0 ? item.value : call_.pad(item.value, growth.axis, 0, *most_ * growth.each);
  }

  Value size_of(const Item& item, int axis) {
    if (item.bounded_axis >= 0) return item.size;
    return call_.whole(size_along(call_.graph.type(item.value), axis));
  }

  Value tensor_of(const Item& item, const char* what) {
    if (item.form != Item::Form::tensor || item.bounded_axis >= 0)
      unknown(fmt::format("{} is no tensor of a known size", what));
    return item.value;
  }

  /// A while_loop.
  Items in_graph() {
    std::vector<Value> carries = {
        call_.given(1) ? call_.b.reshape(call_.b.cast(call_[1], boolean), {}) : call_.scalar(boolean, 1),
        call_.scalar(i64, 0)};
    std::vector<Value> end;  // the number of steps, where it is not known
    if (!limit_) {
      end.push_back(call_.b.reshape(call_.b.cast(call_[0], i64), {}));
      carries[0] =
          call_.graph.add("logical_and", {carries[0], call_.graph.add("less", {carries[1], end[0]})});
    }
    for (size_t k = 0; k < first_.size(); ++k)
      carries.push_back(with_room(first_[k], grows_[k], body_->inputs[2 + k].name));
    for (size_t k = 0; k < first_.size(); ++k)
      if (grows_[k].axis >= 0) carries.push_back(size_of(first_[k], grows_[k].axis));
    std::vector<onnx::BodyArgument> arguments;
    for (size_t k = 0; k < carries.size() + end.size(); ++k) {
      const Value value = k < carries.size() ? carries[k] : end[0];
      arguments.push_back({call_.graph.type(value),
                           k < 2 + first_.size() && k >= 2 ? body_->inputs[k].name : fmt::format("loop{}", k),
                           {value}});
    }
    bool always = limit_ && (!call_.given(1) || (call_.known(1) && call_.known(1)->at(0) != 0));
    onnx::ControlBody body = call_.nested.body_of(
        arguments, [&](Graph& graph, std::span<const Value> in) { return step(graph, in, always); });
    if (std::exchange(again_, false)) return in_graph();  // with what is known of its growth now
    ops::ScanOperands over;
    over.conditional = true;
    over.carries = carries;
    over.invariants = end;
    over.invariants.insert(over.invariants.end(), body.captured.begin(), body.captured.end());
    over.length = limit_ ? std::min(*limit_, no_limit) : no_limit;
    if (stacks_ > 0 && over.length == Dim(no_limit))
      unknown("it stacks what its steps give, without a number of steps that is known");
    const Value loop = ops::add_scan(call_.graph, over, std::move(body.graph));
    const auto result = [&](size_t k) { return Value{loop.node, static_cast<int32_t>(k)}; };
    Items results;
    size_t next = first_.size() + 2;
    for (size_t k = 0; k < first_.size(); ++k)
      results.push_back(grows_[k].axis < 0 ? Item(result(k + 2))
                                           : Item::bounded(result(k + 2), grows_[k].axis, result(next++)));
    for (size_t k = 0; k < stacks_; ++k) {
      const Value stack = result(next + k);
      results.push_back(always || limit_ == 0 ? Item(stack) : Item::bounded(stack, 0, result(1)));
    }
    return results;
  }

  /// The body: whether it goes on, the number of the next step, what is carried; what is stacked. `always`
  /// becomes false where it may end before its limit.
  std::vector<Value> step(Graph& graph, std::span<const Value> in, bool& always) {
    ops::Build b(graph);
    Items arguments{in[1], in[0]};
    size_t size_at = 2 + first_.size();
    for (size_t k = 0; k < first_.size(); ++k)
      arguments.push_back(grows_[k].axis < 0 ? Item(in[2 + k])
                                             : Item::bounded(in[2 + k], grows_[k].axis, in[size_at++]));
    const Items results = call_.nested.inline_nested(*body_, arguments);
    Value going = tensor_of(results[0], "whether it goes on");
    if (going != in[0]) {
      if (b.shape(going).count() != 1) call_.refuse("whether it goes on is not one value");
      const Array* known = graph.constant_value(going);
      always = always && known && known->at(0) != 0;
      going = b.reshape(b.cast(going, boolean), {});
    }
    const Value next = b.add(in[1], 1);
    if (!limit_) going = graph.add("logical_and", {going, graph.add("less", {next, in[size_at]})});
    std::vector<Value> outputs = {going, next}, sizes;
    for (size_t k = 0; k < first_.size(); ++k)
      outputs.push_back(carried(graph, results[1 + k], in[2 + k], k, sizes));
    outputs.insert(outputs.end(), sizes.begin(), sizes.end());
    for (size_t k = 0; k < stacks_; ++k)
      outputs.push_back(tensor_of(results[1 + first_.size() + k], "what it stacks"));
    return outputs;
  }

  /// What is handed on to the next step, in the memory of what this one had; `sizes` gets its size where it
  /// has one.
  Value carried(Graph& graph, const Item& item, Value had, size_t k, std::vector<Value>& sizes) {
    Growth& growth = grows_[k];
    const std::string& name = body_->inputs[2 + k].name;
    if (item.form != Item::Form::tensor) unknown(fmt::format("'{}', which it carries, is no tensor", name));
    const Type &before = graph.type(had), after = graph.type(item.value);
    const auto changes = [&]() {
      unknown(fmt::format("'{}', which it carries, changes from {} to {} in a step", name, before.str(),
                          after.str()));
    };
    if (before.dtype != after.dtype || before.shape.rank() != after.shape.rank()) changes();
    int axis = item.bounded_axis;
    for (int d = 0; d < before.shape.rank(); ++d)
      if (d != axis && before.shape[static_cast<size_t>(d)] != after.shape[static_cast<size_t>(d)]) {
        if (axis >= 0) changes();
        axis = d;
      }
    if (axis < 0) {
      if (growth.axis >= 0) sizes.push_back(size_in(graph, before, growth.axis));
      return item.value;
    }
    const int64_t room = size_along(before, axis), now = size_along(after, axis);
    if (growth.axis < 0) {  // that it grows is new
      growth = {axis, std::max<int64_t>(now - room, 0)};
      again_ = true;
      return had;
    }
    // Its first step is measured as it begins; what a step adds is the same in all.
    if (growth.axis != axis || now - room > std::max(growth.each, int64_t{0})) {
      if (growth.axis != axis || growth.each > 0) changes();
      growth.each = now - room;
      again_ = true;
      sizes.push_back(item.size);
      return had;
    }
    sizes.push_back(item.bounded_axis >= 0 ? item.size : size_in(graph, after, axis));
    if (now == room) return item.value;
    Ints none(before.shape.size(), 0);
    if (now > room)
      return graph.add("slice", {item.value}, {{"starts", none}, {"ends", before.shape.sizes()}});
    Ints high = none;
    high[static_cast<size_t>(axis)] = room - now;
    return graph.add("pad", {item.value}, {{"low", none}, {"high", high}});
  }

  static Value size_in(Graph& graph, const Type& type, int axis) {
    return graph.scalar(i64, static_cast<double>(size_along(type, axis)));
  }

  onnx::ImportCall& call_;
  const std::shared_ptr<const onnx::GraphProto> body_;
  std::optional<int64_t> limit_;  // nullopt: not known
  std::optional<int64_t> most_;   // steps, where a limit is known or has one
  std::vector<Growth> grows_;     // of what it carries
  bool again_ = false;            // more of it grows than was known
  Items first_;                   // what it carries
  size_t stacks_ = 0;
};

}  // namespace

/// A loop whose number of steps is known is written step after step; any other becomes a while_loop.
MILLRACE_ONNX_IMPORT(Loop) { return LoopRule(call).run(); }
