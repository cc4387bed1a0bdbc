#include "ir/node_key.h"

#include <millrace/operator.h>

namespace millrace {
namespace {

void append_dims(std::string& key, const Shape& shape) {
  append_bytes(key, shape.rank());
  for (const Dim& dim : shape) {
    append_bytes(key, dim.factor());
    if (dim.is_static()) continue;
    for (const std::string& name : dim.names()) key += name + '*';
    key += '\0';
  }
}

void append_attribute(std::string& key, const Attribute& attribute, const ArrayKey& array) {
  append_bytes(key, attribute.index());
  std::visit(
      [&](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, std::vector<int64_t>>) {
          append_bytes(key, value.size());
          key.append(reinterpret_cast<const char*>(value.data()), value.size() * sizeof value[0]);
        } else if constexpr (std::is_same_v<T, Shape>) {
          append_dims(key, value);
        } else if constexpr (std::is_same_v<T, Array>) {
          array(key, value);
        } else {
          append_bytes(key, value);
        }
      },
      attribute);
  key += ';';
}

}  // namespace

void append_key(std::string& key, const Type& type) {
  append_bytes(key, type.dtype);
  append_dims(key, type.shape);
}

void append_key(std::string& key, const Node& node, std::span<const Value> operands, const ArrayKey& array) {
  key += node.op->name;
  key += '(';
  for (const Value& operand : operands) append_bytes(key, operand);
  for (const auto& [name, value] : node.attributes.items()) append_attribute(key, value, array);
}

void append_elements(std::string& key, const Array& array) {
  append_key(key, array.type());
  key.append(static_cast<const char*>(array.data()), static_cast<size_t>(array.bytes()));
}

}  // namespace millrace
