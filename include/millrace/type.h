// Types of values: dtype, dimensions (possibly named), shapes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

/// What the bits of an element mean.
enum class Kind : uint8_t { boolean, unsigned_int, signed_int, floating, brain_floating };

/// Element type: kind and width, so that narrower or wider ones need no redesign. bool is stored in a byte.
struct DType {
  Kind kind = Kind::floating;
  uint8_t bits = 32;

  bool operator==(const DType&) const = default;
  auto operator<=>(const DType&) const = default;
  bool is_float() const { return kind == Kind::floating || kind == Kind::brain_floating; }
  bool is_int() const { return kind == Kind::unsigned_int || kind == Kind::signed_int; }
  bool is_bool() const { return kind == Kind::boolean; }
  /// Bytes of one element in memory.
  int64_t bytes() const { return bits < 8 ? 1 : bits / 8; }
  /// "f32", "bf16", "f16", "f64", "i8", "u8", "i32", "i64", "bool".
  std::string name() const;
  /// Inverse of name(); throws InputError for an unknown name.
  static DType parse(std::string_view name);
};

inline constexpr DType f32{Kind::floating, 32}, f64{Kind::floating, 64}, f16{Kind::floating, 16},
    bf16{Kind::brain_floating, 16}, i8{Kind::signed_int, 8}, u8{Kind::unsigned_int, 8},
    i32{Kind::signed_int, 32}, i64{Kind::signed_int, 64}, boolean{Kind::boolean, 1};

/// Every dtype Millrace stores, in a fixed order.
const std::vector<DType>& all_dtypes();

/// One dimension: `factor` times the product of named sizes. A plain number has no names. Names are bound to
/// numbers when a graph is specialised.
class Dim {
 public:
  Dim(int64_t size = 0) : factor_(size) {}  // NOLINT: numbers are dimensions
  /// A named dimension, e.g. "batch".
  static Dim named(std::string name);

  bool is_static() const { return !names_; }
  /// The number; throws TypeError when the dimension is named.
  int64_t size() const;
  int64_t factor() const { return factor_; }
  const std::vector<std::string>& names() const;
  bool operator==(const Dim& other) const {
    return factor_ == other.factor_ &&
           (names_ == other.names_ || (names_ && other.names_ && *names_ == *other.names_));
  }
  bool operator==(int64_t size) const { return is_static() && factor_ == size; }
  /// "32", "batch", "3*batch*length".
  std::string str() const;
  static Dim parse(std::string_view text);

  friend Dim operator*(const Dim& a, const Dim& b);
  /// Exact quotient; throws TypeError when b does not divide a.
  friend Dim operator/(const Dim& a, const Dim& b);

 private:
  Dim(int64_t factor, std::vector<std::string> names);

  int64_t factor_ = 0;
  // Sorted; null: none. Shared, as types are copied far more often than made: in each run of a session.
  std::shared_ptr<const std::vector<std::string>> names_;
};

/// Sizes for named dimensions.
using Bindings = std::map<std::string, int64_t>;

/// Dimensions, outermost first; rank 0 is a scalar.
class Shape : public std::vector<Dim> {
 public:
  using std::vector<Dim>::vector;
  explicit Shape(const std::vector<int64_t>& sizes) : std::vector<Dim>(sizes.begin(), sizes.end()) {}

  int rank() const { return static_cast<int>(size()); }
  bool is_static() const;
  /// The number of elements, possibly named.
  Dim elements() const;
  /// All sizes as numbers; throws TypeError when one is named.
  std::vector<int64_t> sizes() const;
  /// The product of all sizes; throws TypeError when one is named.
  int64_t count() const { return elements().size(); }
  /// Named dimensions replaced by numbers; names that are not bound stay.
  Shape specialise(const Bindings& bindings) const;
  /// "[batch, 3, 32, 32]"
  std::string str() const;
};

/// What a value is: element type and shape.
struct Type {
  DType dtype = f32;
  Shape shape;

  bool operator==(const Type&) const = default;
  /// "f32[batch, 10]"
  std::string str() const;
  static Type parse(std::string_view text);
  int64_t bytes() const { return shape.count() * dtype.bytes(); }
  /// Why no value can be of this type (a dtype that is not in all_dtypes(), a size that is negative or 2^48
  /// or more, 2^48 bytes or more); empty when there is no reason.
  std::string fault() const;
};

/// Numpy's broadcasting of two shapes; throws TypeError when they do not fit.
Shape broadcast_shapes(const Shape& a, const Shape& b);

}  // namespace millrace
