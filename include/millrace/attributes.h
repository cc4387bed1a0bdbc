// Named constants of a node: axes, strides, epsilon …, and what operators declare of them.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <millrace/array.h>
#include <millrace/type.h>

namespace millrace {

/// One attribute value. Shape is for sizes that may be named; Array only for constants.
using Attribute = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>, DType, Shape, Array>;

/// The types of attributes: the alternatives of Attribute, in their order.
enum class AttributeType { flag, integer, number, text, integers, dtype, shape, array };

/// What an attribute may be of all that its type allows.
struct AttributeRange {
  /// Bounds of numbers (each one, in lists).
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
  /// `low` itself is left out.
  bool above = false;
  /// How many numbers a list has; negative: any number.
  int count = -1;
  /// The words that a text, or a dtype's name, may be; empty: any.
  std::vector<std::string> choices = {};
};

/// A declared attribute, of its default's type. Without a default it says its type, and a node must give it.
struct AttributeSpec {
  AttributeSpec(std::string_view called, Attribute usual, std::string_view meaning,
                AttributeRange allowed = {})
      : name(called),
        type(static_cast<AttributeType>(usual.index())),
        fallback(std::move(usual)),
        doc(meaning),
        range(std::move(allowed)) {}
  AttributeSpec(std::string_view called, AttributeType needed, std::string_view meaning,
                AttributeRange allowed = {})
      : name(called), type(needed), doc(meaning), range(std::move(allowed)) {}

  std::string_view name;
  AttributeType type;
  std::optional<Attribute> fallback;
  std::string_view doc;
  AttributeRange range;

  /// Why the attribute cannot be that: "must be a whole number, not a text", "must be from 0 to 1, not 2";
  /// empty where it can.
  std::string fault(const Attribute& value) const;
};

/// The length of a while_loop without a limit, which stacks nothing.
inline constexpr int64_t no_limit = (int64_t{1} << 47) - 1;

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

  const std::vector<std::pair<std::string, Attribute>>& items() const;
  bool operator==(const Attributes& other) const;

 private:
  const Attribute& require(std::string_view name) const;
  [[noreturn]] static void wrong_kind(std::string_view name);
  // Copies share it until one of them changes; null: none.
  std::shared_ptr<std::vector<std::pair<std::string, Attribute>>> items_;
};

}  // namespace millrace
