// What a node computes, as bytes to find equal ones by.
#pragma once

#include <functional>
#include <span>
#include <string>

#include <millrace/graph.h>

namespace millrace {

/// Appends what stands for an array.
using ArrayKey = std::function<void(std::string& key, const Array& array)>;

/// Equal bytes: equal types.
void append_key(std::string& key, const Type& type);

/// Equal bytes: nodes of equal operators, operands and attributes. Bodies and places are not asked for.
void append_key(std::string& key, const Node& node, std::span<const Value> operands, const ArrayKey& array);

/// The elements themselves.
void append_elements(std::string& key, const Array& array);

/// The bytes of a number.
template <typename T>
void append_bytes(std::string& key, const T& value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace millrace
