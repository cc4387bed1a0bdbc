#include <algorithm>
#include <utility>

#include <millrace/narrow_types.h>
#include <millrace/scalar.h>
#include <millrace/type.h>

#include "base/format.h"
#include "base/number_from.h"

namespace millrace {

const std::vector<DType>& all_dtypes() {
  static const std::vector<DType> list = {
      f32, bf16, f16, f64, i8, u8,       i32,        i64,    boolean,    i16,    u16,   u32,
      u64, i4,   u4,  i2,  u2, f8e4m3fn, f8e4m3fnuz, f8e5m2, f8e5m2fnuz, f8e8m0, f4e2m1};
  return list;
}

std::string DType::name() const {
  switch (kind) {
    case Kind::boolean:
      return "bool";
    case Kind::unsigned_int:
      return fmt::format("u{}", bits);
    case Kind::signed_int:
      return fmt::format("i{}", bits);
    case Kind::floating:
      return fmt::format("f{}", bits);
    case Kind::brain_floating:
      return fmt::format("bf{}", bits);
  }
  constexpr std::pair<Kind, const char*> narrow[] = {{e4m3fn, "e4m3fn"}, {e4m3fnuz, "e4m3fnuz"},
                                                     {e5m2, "e5m2"},     {e5m2fnuz, "e5m2fnuz"},
                                                     {e8m0, "e8m0"},     {e2m1, "e2m1"}};
  for (const auto& [own, word] : narrow)
    if (own == kind) return fmt::format("f{}{}", bits, word);
  return "?";
}

DType DType::parse(std::string_view name) {
  for (const DType dtype : all_dtypes())
    if (dtype.name() == name) return dtype;
  std::vector<std::string> known;
  for (const DType dtype : all_dtypes()) known.push_back(dtype.name());
  fail<InputError>("unknown dtype '{}'; known: {}", name, fmt::join(known, ", "));
}

Dim Dim::named(std::string name) {
  const bool is_word =
      std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
  if (name.empty() || !is_word || std::isdigit(static_cast<unsigned char>(name[0])))
    fail<InputError>("'{}' cannot name a dimension: letters, digits and _ can", name);
  return {1, std::vector<std::string>{std::move(name)}};
}

Dim::Dim(int64_t factor, std::vector<std::string> names) : factor_(factor) {
  if (!names.empty()) names_ = std::make_shared<const std::vector<std::string>>(std::move(names));
}

const std::vector<std::string>& Dim::names() const {
  static const std::vector<std::string> none;
  return names_ ? *names_ : none;
}

int64_t Dim::size() const {
  if (!is_static()) fail<TypeError>("the size of dimension '{}' is not known here; bind it first", str());
  return factor_;
}

std::string Dim::str() const {
  if (!names_) return std::to_string(factor_);
  std::string text = factor_ == 1 ? "" : std::to_string(factor_) + "*";
  return text + fmt::format("{}", fmt::join(*names_, "*"));
}

Dim Dim::parse(std::string_view text) {
  Dim dim(1);
  for (bool last = false; !last;) {
    const size_t star = text.find('*');
    const std::string_view part = text.substr(0, star);
    last = star == std::string_view::npos;
    if (!last) text = text.substr(star + 1);
    if (const auto number = number_from(part); number && *number >= 0)
      dim = dim * Dim(*number);
    else if (!part.empty() && (std::isalpha(static_cast<unsigned char>(part[0])) || part[0] == '_'))
      dim = dim * Dim::named(std::string(part));
    else
      fail<InputError>("'{}' is not a dimension", part);
  }
  return dim;
}

Dim operator*(const Dim& a, const Dim& b) {
  int64_t factor = 0;
  if (__builtin_mul_overflow(a.factor_, b.factor_, &factor))
    fail<TypeError>("{} times {} is too large", a.str(), b.str());
  if (factor == 0) return {};
  std::vector<std::string> names = a.names();
  names.insert(names.end(), b.names().begin(), b.names().end());
  std::sort(names.begin(), names.end());
  return {factor, std::move(names)};
}

Dim operator/(const Dim& a, const Dim& b) {
  bool ok = b.factor_ > 0 && a.factor_ % b.factor_ == 0;
  std::vector<std::string> names = a.names();
  for (const std::string& name : b.names()) {
    const auto it = std::find(names.begin(), names.end(), name);
    ok = ok && it != names.end();
    if (!ok) break;
    names.erase(it);
  }
  if (!ok) fail<TypeError>("{} is not divisible by {}", a.str(), b.str());
  return {a.factor_ / b.factor_, std::move(names)};
}

bool Shape::is_static() const {
  return std::all_of(begin(), end(), [](const Dim& d) { return d.is_static(); });
}

Dim Shape::elements() const {
  // Of numbers alone, which most are asked for, without a list of names at each step.
  int64_t count = 1;
  bool plain = true;
  for (const Dim& dim : *this)
    plain = plain && dim.is_static() && !__builtin_mul_overflow(count, dim.factor(), &count);
  if (plain) return count;
  Dim product(1);
  for (const Dim& dim : *this) product = product * dim;
  return product;
}

std::vector<int64_t> Shape::sizes() const {
  std::vector<int64_t> out;
  for (const Dim& dim : *this) out.push_back(dim.size());
  return out;
}

Shape Shape::specialise(const Bindings& bindings) const {
  Shape out;
  for (const Dim& dim : *this) {
    Dim d(dim.factor());
    for (const std::string& name : dim.names()) {
      const auto it = bindings.find(name);
      d = d * (it == bindings.end() ? Dim::named(name) : Dim(it->second));
    }
    out.push_back(d);
  }
  return out;
}

std::string Shape::str() const {
  std::string text = "[";
  for (int d = 0; d < rank(); ++d) text += (d ? ", " : "") + (*this)[d].str();
  return text + "]";
}

std::string Type::str() const { return dtype.name() + shape.str(); }

Type Type::parse(std::string_view text) {
  const size_t open = text.find('[');
  if (open == std::string_view::npos || text.back() != ']')
    fail<InputError>("'{}' is not a type like f32[2, 3]", text);
  Type type{DType::parse(text.substr(0, open)), {}};
  std::string_view inner = text.substr(open + 1, text.size() - open - 2);
  for (bool last = inner.empty(); !last;) {
    const size_t comma = inner.find(',');
    std::string_view part = inner.substr(0, comma);
    while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
    type.shape.push_back(Dim::parse(part));
    last = comma == std::string_view::npos;
    if (!last) inner = inner.substr(comma + 1);
  }
  return type;
}

std::string Type::fault() const {
  constexpr int64_t most_bytes = int64_t{1} << 48;
  const auto& known = all_dtypes();
  if (std::find(known.begin(), known.end(), dtype) == known.end())
    return fmt::format("there is no dtype {}", dtype.name());
  int64_t bytes = dtype.bytes();
  bool empty = false, too_large = false;
  for (const Dim& dim : shape) {
    if (dim.factor() < 0) return fmt::format("the shape {} has a negative size", shape.str());
    // Of an empty shape too: type rules compute with each size.
    if (dim.factor() >= most_bytes) return fmt::format("the shape {} is too large", shape.str());
    empty = empty || dim.factor() == 0;
    too_large = too_large || __builtin_mul_overflow(bytes, dim.factor(), &bytes) || bytes >= most_bytes;
  }
  return too_large && !empty ? fmt::format("the shape {} is too large", shape.str()) : "";
}

Shape broadcast_shapes(const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  Shape out(rank);
  for (int d = 1; d <= rank; ++d) {
    const Dim da = d <= a.rank() ? a[a.rank() - d] : Dim(1), db = d <= b.rank() ? b[b.rank() - d] : Dim(1);
    if (da == db || db == 1)
      out[rank - d] = da;
    else if (da == 1)
      out[rank - d] = db;
    else
      fail<TypeError>("shapes {} and {} cannot be broadcast together", a.str(), b.str());
  }
  return out;
}

}  // namespace millrace
