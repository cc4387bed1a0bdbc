#include "onnx/writer.h"

#include <string_view>

#include "base/format.h"
#include "onnx/model.h"

namespace millrace::onnx {
namespace {

/// TensorProto.DataType of a dtype.
int64_t number_of(DType dtype) {
  for (int64_t number = 1; number < kDataTypes; ++number)
    if (dtype_of(number) == dtype) return number;
  fail<InternalError>("ONNX has no dtype {}", dtype.name());
}

/// The elements as they lie in a model: of less than a byte several in each, the first in the lowest bits.
std::string packed(const Array& array) {
  const int bits = array.dtype().bits;
  const std::string_view bytes(static_cast<const char*>(array.data()), static_cast<size_t>(array.bytes()));
  if (bits >= 8 || array.dtype().is_bool()) return std::string(bytes);
  const size_t in_byte = 8 / static_cast<size_t>(bits), mask = (size_t{1} << bits) - 1;
  std::string out((bytes.size() + in_byte - 1) / in_byte, '\0');
  for (size_t i = 0; i < bytes.size(); ++i)
    out[i / in_byte] = static_cast<char>(static_cast<unsigned char>(out[i / in_byte]) |
                                         (static_cast<size_t>(bytes[i]) & mask)
                                             << (i % in_byte * static_cast<size_t>(bits)));
  return out;
}

constexpr const char* kLearning = "ai.onnx.ml";  // a domain of operators
constexpr uint64_t kTexts = 8;                   // TensorProto.DataType.STRING

WireWriter value_info(const std::string& name, uint64_t data_type, const Shape& dims) {
  WireWriter shape;
  for (const Dim& dim : dims) {
    WireWriter message;
    if (dim.is_static())
      message.integer(1, dim.size());
    else
      message.bytes(2, dim.str());
    shape.message(1, message);
  }
  const WireWriter tensor = WireWriter().varint(1, data_type).message(2, shape);
  return WireWriter().bytes(1, name).message(2, WireWriter().message(1, tensor));
}

WireWriter value_info(const std::string& name, const Type& type) {
  return value_info(name, static_cast<uint64_t>(number_of(type.dtype)), type.shape);
}

WireWriter attribute_proto(const std::string& name, const OnnxAttribute& attribute) {
  WireWriter proto;
  proto.bytes(1, name);
  if (const auto* integer = std::get_if<int64_t>(&attribute)) {
    proto.integer(3, *integer).varint(20, 2);
  } else if (const auto* number = std::get_if<float>(&attribute)) {
    proto.number(2, *number).varint(20, 1);
  } else if (const auto* text = std::get_if<std::string>(&attribute)) {
    proto.bytes(4, *text).varint(20, 3);
  } else if (const auto* numbers = std::get_if<std::vector<float>>(&attribute)) {
    for (const float value : *numbers) proto.number(7, value);
    proto.varint(20, 6);
  } else if (const auto* texts = std::get_if<std::vector<std::string>>(&attribute)) {
    for (const std::string& value : *texts) proto.bytes(9, value);
    proto.varint(20, 8);
  } else {
    for (const int64_t value : std::get<std::vector<int64_t>>(attribute)) proto.integer(8, value);
    proto.varint(20, 7);
  }
  return proto;
}

}  // namespace

WireWriter tensor_message(const std::string& name, const Array& array) {
  WireWriter tensor;
  for (const int64_t size : array.shape().sizes()) tensor.integer(1, size);
  tensor.varint(2, static_cast<uint64_t>(number_of(array.dtype()))).bytes(8, name).bytes(9, packed(array));
  return tensor;
}

int64_t GraphWriter::data_type(DType dtype) const { return number_of(dtype); }

void GraphWriter::input(const std::string& name, const Type& type) {
  inputs_.message(11, value_info(name, type));
  know_dims(name, type.shape);
}

void GraphWriter::text_input(const std::string& name, const Shape& shape) {
  inputs_.message(11, value_info(name, kTexts, shape));
  know_dims(name, shape);
}

void GraphWriter::know_dims(const std::string& name, const Shape& shape) {
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const Dim& dim = shape[axis];
    if (dim.names().size() == 1 && dim.factor() == 1) dims_.emplace(dim.names()[0], std::pair(name, axis));
  }
}

std::string GraphWriter::text_ids(const std::string& texts,
                                  const std::vector<std::pair<std::string, int64_t>>& ids) {
  std::vector<std::string> keys;
  std::vector<int64_t> values;
  for (const auto& [text, id] : ids) {
    keys.push_back(text);
    values.push_back(id);
  }
  if (ids.empty()) {  // the lists must not be empty: what is in none is 0
    keys.emplace_back();
    values.push_back(0);
  }
  const std::string result = fresh("LabelEncoder");
  append("ai.onnx.ml.LabelEncoder", {texts}, {result},
         {{"keys_strings", keys}, {"values_int64s", values}, {"default_int64", int64_t{0}}});
  return result;
}

void GraphWriter::output(const std::string& name, const Type& type) {
  outputs_.message(12, value_info(name, type));
}

void GraphWriter::weight(const std::string& name, const Array& array) {
  initialisers_.emplace_back(name, tensor_message(name, array));
}

std::string GraphWriter::fresh(const std::string& hint) {
  while (true)
    if (std::string name = fmt::format("{}{}_{}", prefix_, hint, counter_++); !taken_.contains(name))
      return name;
}

GraphWriter GraphWriter::inner() {
  GraphWriter writer(opset_);
  writer.prefix_ = fresh("body") + "/";
  writer.location_ = location_;
  writer.taken_ = taken_;
  writer.read_ = read_;
  writer.ml_ = ml_;
  return writer;
}

std::string GraphWriter::constant(const Array& array) {
  const std::string name = fresh("constant");
  weight(name, array);
  return name;
}

std::string GraphWriter::ints(const std::vector<int64_t>& values) {
  Array array(i64, {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), array.as<int64_t>().begin());
  return constant(array);
}

void GraphWriter::append(const std::string& type, const std::vector<std::string>& inputs,
                         const std::vector<std::string>& results, const OnnxAttributes& attributes,
                         const OnnxGraphs& graphs) {
  WireWriter proto;
  for (const std::string& name : inputs) proto.bytes(1, name);
  read_->insert(inputs.begin(), inputs.end());
  for (const std::string& name : results) proto.bytes(2, name);
  proto.bytes(3, location_.empty() ? results[0] : location_ + "/" + results[0]);
  const size_t dot = type.rfind('.');
  proto.bytes(4, dot == std::string::npos ? type : type.substr(dot + 1));
  for (const auto& [name, graph] : graphs)
    proto.message(5, WireWriter().bytes(1, name).message(6, graph).varint(20, 5));
  for (const auto& [name, attribute] : attributes) proto.message(5, attribute_proto(name, attribute));
  if (dot != std::string::npos) {
    proto.bytes(7, type.substr(0, dot));
    *ml_ = *ml_ || type.starts_with(kLearning);
  }
  nodes_.message(1, proto);
}

std::vector<std::string> GraphWriter::nodes(const std::string& type, const std::vector<std::string>& inputs,
                                            int results, const OnnxAttributes& attributes) {
  return nodes(type, inputs, results, attributes, {});
}

std::vector<std::string> GraphWriter::nodes(const std::string& type, const std::vector<std::string>& inputs,
                                            int results, const OnnxAttributes& attributes,
                                            const OnnxGraphs& graphs) {
  std::vector<std::string> names;
  for (int i = 0; i < results; ++i) names.push_back(fresh(type));
  append(type, inputs, names, attributes, graphs);
  return names;
}

std::string GraphWriter::node(const std::string& type, const std::vector<std::string>& inputs,
                              const OnnxAttributes& attributes) {
  return nodes(type, inputs, 1, attributes)[0];
}

void GraphWriter::named_node(const std::string& type, const std::vector<std::string>& inputs,
                             const std::string& result) {
  append(type, inputs, {result}, {});
}

std::string GraphWriter::dim_of(const Dim& dim) {
  std::string value;
  for (const std::string& name : dim.names()) {
    std::string& cached = dim_values_[name];
    if (cached.empty()) {
      const auto source = dims_.find(name);
      if (source == dims_.end()) fail<InputError>("no input of the model has the dimension '{}' alone", name);
      cached = node("Gather", {node("Shape", {source->second.first}), ints({source->second.second})},
                    {{"axis", int64_t{0}}});
    }
    value = value.empty() ? cached : node("Mul", {value, cached});
  }
  if (value.empty()) return ints({dim.factor()});
  return dim.factor() == 1 ? value : node("Mul", {value, ints({dim.factor()})});
}

std::string GraphWriter::shape_of(const Shape& shape) {
  if (shape.is_static()) return ints(shape.sizes());
  std::vector<std::string> parts;
  for (const Dim& dim : shape) parts.push_back(dim_of(dim));
  return parts.size() == 1 ? parts[0] : node("Concat", parts, {{"axis", int64_t{0}}});
}

WireWriter GraphWriter::finish(const std::string& name) const {
  // A message's bytes are its fields one after the other, so the parts written apart are joined as they are.
  WireWriter initialisers;
  for (const auto& [own, tensor] : initialisers_)
    if (read_->contains(own)) initialisers.message(5, tensor);
  return WireWriter().raw(nodes_).bytes(2, name).raw(initialisers).raw(inputs_).raw(outputs_);
}

}  // namespace millrace::onnx
