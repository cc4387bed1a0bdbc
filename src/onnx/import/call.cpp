#include "onnx/import/call.h"

#include <algorithm>
#include <numeric>

#include "base/format.h"
#include "ops/body.h"

namespace millrace::onnx {

Ints numbered(int64_t from, int64_t to) {
  Ints list(static_cast<size_t>(std::max<int64_t>(to - from, 0)));
  std::iota(list.begin(), list.end(), from);
  return list;
}

void ImportCall::refuse(const std::string& reason) const { fail<InputError>("{}", reason); }

void ImportCall::refuse_sizes(const std::string& reason) const {
  std::vector<Value> values;
  for (size_t k = 0; k < operands_.size(); ++k) {
    const Item& each = operands_[k];
    if (each.form != Item::Form::tensor) continue;
    if (each.bounded_axis >= 0)
      values.push_back(each.size);
    else if (k > 0)
      values.push_back(each.value);
  }
  const std::vector<std::string> names = inputs_behind(graph, values);
  throw UnknownInputs(
      names.empty() ? reason : fmt::format("{} (they come from '{}')", reason, fmt::join(names, "', '")),
      names);
}

const Item& ImportCall::item(int k) const {
  if (!given(k)) refuse(fmt::format("input {} is left out", k));
  return operands_[static_cast<size_t>(k)];
}

Value ImportCall::operand(int k) const {
  const Item& found = item(k);
  const std::string& name = node.inputs[static_cast<size_t>(k)];
  if (found.form == Item::Form::texts)
    refuse(fmt::format("its input '{}' holds texts, which it is not read with; compute it before", name));
  if (found.form != Item::Form::tensor) refuse(fmt::format("its input '{}' is a sequence, no tensor", name));
  if (found.bounded_axis >= 0)
    throw UnknownInputs(
        fmt::format(
            "the size of its input '{}' depends on data, and it needs that size before the model runs", name),
        inputs_behind(graph, {found.size}));
  return found.value;
}

Value ImportCall::buffer(int k) const {
  if (item(k).bounded_axis < 0) return operand(k);
  return item(k).value;
}

Value ImportCall::true_size(int k, int64_t axis) const {
  if (item(k).bounded_axis == axis) return item(k).size;
  return whole(graph.type(buffer(k)).shape[static_cast<size_t>(axis)].size());
}

ImportCall::Said ImportCall::sizes_said(int k) const {
  const auto list = [](const Array& array) {
    Ints all;
    for (int64_t i = 0; i < array.count(); ++i) all.push_back(array.int_at(i));
    return all;
  };
  const Value value = operand(k);
  ops::Build build(graph);
  const auto flat = [&] { return build.reshape(build.cast(value, i64), {graph.type(value).shape.count()}); };
  if (const auto& between = item(k).between) return {list(between->least), list(between->most), flat()};
  const Ints known = known_ints(k);
  return {known, known, flat()};
}

DType ImportCall::said_dtype(DType usual) const {
  const std::optional<DType> dtype = has("dtype") ? dtype_of(integer("dtype")) : usual;
  if (!dtype) refuse("Millrace does not compute with its type");
  return *dtype;
}

Value ImportCall::element(Value all, int64_t i) { return b.reshape(part(all, 0, i, i + 1), {}); }

Value ImportCall::clamp(Value x, double low, double high) {
  return graph.add("clamp", {x}, {{"low", low}, {"high", high}});
}

Value ImportCall::places(const Shape& shape, int64_t axis) {
  return graph.add("iota", {}, {{"shape", shape}, {"axis", axis}});
}

Value ImportCall::gather(Value x, Value at, int64_t axis) {
  return graph.add("gather", {x, at}, {{"axis", axis}});
}

Value ImportCall::part(Value x, int64_t axis, int64_t from, int64_t to) {
  Ints starts(b.shape(x).size(), 0), ends = b.shape(x).sizes();
  starts[static_cast<size_t>(axis)] = from;
  ends[static_cast<size_t>(axis)] = to;
  return graph.add("slice", {x}, {{"starts", starts}, {"ends", ends}});
}

Value ImportCall::pad(Value x, int64_t axis, int64_t before, int64_t behind, double value) {
  Ints low(b.shape(x).size(), 0), high = low;
  low[static_cast<size_t>(axis)] = before;
  high[static_cast<size_t>(axis)] = behind;
  return graph.add("pad", {x}, {{"low", low}, {"high", high}, {"value", value}});
}

Value ImportCall::concat(const std::vector<Value>& parts, int64_t axis) {
  return parts.size() == 1 ? parts[0] : graph.add("concat", parts, {{"axis", axis}});
}

Value ImportCall::stacked(const std::vector<Value>& slices, int64_t axis) {
  std::vector<Value> parts;
  for (const Value each : slices) {
    Shape shape = b.shape(each);
    if (axis > static_cast<int64_t>(shape.size())) refuse("it stacks tensors of different ranks");
    shape.insert(shape.begin() + axis, Dim(1));
    parts.push_back(b.reshape(each, shape));
  }
  return concat(parts, axis);
}

const Texts& ImportCall::texts(int k) const {
  const Item& found = item(k);
  if (found.form != Item::Form::texts) refuse(fmt::format("input {} is no tensor of texts", k));
  return *found.texts;
}

const std::vector<Item>& ImportCall::sequence(int k) const {
  const Item& found = item(k);
  if (found.form != Item::Form::sequence) refuse(fmt::format("input {} is no sequence", k));
  return *found.items;
}

std::vector<std::string> inputs_behind(const Graph& graph, const std::vector<Value>& values) {
  const std::vector<char> needed = ops::needed_by(graph, values);
  std::vector<std::string> names;
  for (size_t i = 0; i < graph.inputs().size(); ++i)
    if (needed[static_cast<size_t>(graph.inputs()[i].node)]) names.push_back(graph.input_names()[i]);
  return names;
}

const Array& ImportCall::known_array(int k) const {
  const Array* array = known(k);
  if (array) return *array;
  const Value value = operand(k);
  const std::vector<std::string> names = inputs_behind(graph, {value});
  throw UnknownInputs(
      fmt::format(
          "what is computed, or how large it is, depends on its input '{}', which is not known before the "
          "model runs: it comes from {}",
          node.inputs[static_cast<size_t>(k)],
          names.empty() ? "random numbers" : fmt::format("'{}'", fmt::join(names, "', '"))),
      names);
}

Ints ImportCall::known_ints(int k) const {
  const Array& array = known_array(k);
  if (is_real(array.dtype())) refuse(fmt::format("its input {} is no list of whole numbers", k));
  Ints list;
  for (int64_t i = 0; i < array.count(); ++i) list.push_back(array.int_at(i));
  return list;
}

int64_t ImportCall::known_int(int k) const {
  const Ints list = known_ints(k);
  if (list.size() != 1) refuse(fmt::format("its input {} is not one whole number", k));
  return list[0];
}

double ImportCall::known_number(int k) const {
  const Array& array = known_array(k);
  if (array.count() != 1)
    refuse(fmt::format("its input '{}' must be one number", node.inputs[static_cast<size_t>(k)]));
  return array.at(0);
}

const AttributeProto& ImportCall::attribute(std::string_view name) const {
  const AttributeProto* found = node.find(name);
  if (!found) refuse(fmt::format("it lacks the attribute '{}'", name));
  return *found;
}

int64_t ImportCall::integer(std::string_view name, std::optional<int64_t> fallback) const {
  return fallback && !has(name) ? *fallback : attribute(name).integer;
}
double ImportCall::number(std::string_view name, std::optional<double> fallback) const {
  return fallback && !has(name) ? *fallback : static_cast<double>(attribute(name).number);
}
std::string ImportCall::text(std::string_view name, std::optional<std::string> fallback) const {
  return fallback && !has(name) ? *fallback : attribute(name).text;
}
Ints ImportCall::ints(std::string_view name, std::optional<Ints> fallback) const {
  return fallback && !has(name) ? *fallback : attribute(name).integers;
}
std::vector<double> ImportCall::numbers(std::string_view name,
                                        std::optional<std::vector<double>> fallback) const {
  if (fallback && !has(name)) return *fallback;
  const std::vector<float>& list = attribute(name).numbers;
  return {list.begin(), list.end()};
}

int64_t ImportCall::axis(int64_t axis, int rank) const {
  if (axis < -rank || axis >= rank) refuse(fmt::format("it has no axis {}: there are {}", axis, rank));
  return axis < 0 ? axis + rank : axis;
}

std::optional<Ints> ImportCall::axes(int from, int rank) const {
  if (!given(from) && !has("axes")) return std::nullopt;
  Ints list = given(from) ? known_ints(from) : ints("axes");
  for (int64_t& each : list) each = axis(each, rank);
  return list;
}

Ints ImportCall::reduced_axes(int rank) const {
  const std::optional<Ints> said = axes(1, rank);
  if (said && !said->empty()) return *said;
  return integer("noop_with_empty_axes", 0) != 0 ? Ints{} : numbered(0, rank);
}

Value ImportCall::ints_constant(const Ints& values) const {
  Array array(i64, {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), array.as<int64_t>().begin());
  return graph.constant(std::move(array));
}

Value ImportCall::whole(int64_t value) const {
  Array array(i64, Shape{});
  array.set_int(0, value);
  return graph.constant(std::move(array));
}

}  // namespace millrace::onnx
