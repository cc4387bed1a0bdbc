// Named constants of a node: axes, strides, epsilon …
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <millrace/array.h>
#include <millrace/type.h>

namespace millrace {

/// One attribute value. Shape is for sizes that may be named; Array only for constants.
using Attribute = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>, DType, Shape, Array>;

/// Attributes in order of name.
class Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<std::string, Attribute>> items);

  void set(std::string name, Attribute value);
  const Attribute* find(std::string_view name) const;
  /// Typed access; throws TypeError when the attribute is missing or of another kind.
  template <typename T>
  const T& get(std::string_view name) const {
    const T* value = std::get_if<T>(&require(name));
    if (!value) wrong_kind(name);
    return *value;
  }
  int64_t integer(std::string_view name) const { return get<int64_t>(name); }
  double number(std::string_view name) const { return get<double>(name); }
  bool flag(std::string_view name) const { return get<bool>(name); }
  const std::vector<int64_t>& ints(std::string_view name) const { return get<std::vector<int64_t>>(name); }
  const Shape& shape(std::string_view name) const { return get<Shape>(name); }
  DType dtype(std::string_view name) const { return get<DType>(name); }

  const std::vector<std::pair<std::string, Attribute>>& items() const { return items_; }
  bool operator==(const Attributes& other) const;

 private:
  const Attribute& require(std::string_view name) const;
  [[noreturn]] static void wrong_kind(std::string_view name);
  std::vector<std::pair<std::string, Attribute>> items_;
};

}  // namespace millrace
