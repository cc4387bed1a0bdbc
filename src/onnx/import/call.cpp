#include "onnx/import/call.h"

#include "base/format.h"

namespace millrace::onnx {

void ImportCall::refuse(const std::string& reason) const { fail<InputError>("{}", reason); }

Value ImportCall::operand(int k) const {
  if (!given(k)) refuse(fmt::format("input {} is left out", k));
  return operands_[static_cast<size_t>(k)];
}

Ints ImportCall::known_ints(int k) const {
  const Array* array = known(k);
  if (!array)
    refuse(fmt::format("sizes depend on its input '{}', which is not known before the model runs",
                       node.inputs[static_cast<size_t>(k)]));
  if (array->dtype().is_float()) refuse(fmt::format("its input {} is no list of whole numbers", k));
  Ints list;
  for (int64_t i = 0; i < array->count(); ++i) list.push_back(array->int_at(i));
  return list;
}

double ImportCall::known_number(int k) const {
  const Array* array = known(k);
  if (!array || array->count() != 1)
    refuse(fmt::format("its input '{}' must be one number that is known before the model runs",
                       node.inputs[static_cast<size_t>(k)]));
  return array->at(0);
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

Value ImportCall::ints_constant(const Ints& values) const {
  Array array(i64, {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), array.as<int64_t>().begin());
  return graph.constant(std::move(array));
}

}  // namespace millrace::onnx
