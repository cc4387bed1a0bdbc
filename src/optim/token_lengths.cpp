#include "optim/token_lengths.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include <millrace/operator.h>

#include "base/format.h"

namespace millrace::optim {
namespace {

struct Lengths {
  int64_t longer, shorter;
};

/// Equal sizes, but for those that are the lengths, or are cut to the shorter one.
bool same_sizes(const Shape& a, const Shape& b, const Lengths& lengths) {
  if (a.rank() != b.rank()) return false;
  for (int d = 0; d < a.rank(); ++d)
    if (a[d] != b[d] && !(b[d] == lengths.shorter && a[d].size() > lengths.shorter)) return false;
  return true;
}

/// How far apart numbers may be for differences of them that were rounded; what hides a key is none.
double rounding_of(const Array& array) {
  constexpr double hides = 1e4;
  double largest = 0;
  for (int64_t i = 0; i < array.count(); ++i)
    if (const double size = std::abs(array.at(i)); size < hides) largest = std::max(largest, size);
  return array.dtype().is_float() ? 4e-7 * largest : 0;
}

/// Whether the shorter array is the beginning of the longer one along each axis.
bool begins(const Array& longer, const Array& shorter, const Lengths& lengths) {
  if (longer.dtype() != shorter.dtype() || !same_sizes(longer.shape(), shorter.shape(), lengths))
    return false;
  const auto* const all = reinterpret_cast<const std::byte*>(longer.data());
  const auto* const some = reinterpret_cast<const std::byte*>(shorter.data());
  if (longer.shape() == shorter.shape())
    return all == some || std::memcmp(all, some, static_cast<size_t>(longer.bytes())) == 0;
  const std::vector<int64_t> sizes = longer.shape().sizes(), own = shorter.shape().sizes();
  const size_t bytes = static_cast<size_t>(longer.dtype().bytes());
  std::vector<int64_t> at(own.size(), 0);
  std::optional<double> rounding;
  for (int64_t i = 0; i < shorter.count(); ++i) {
    int64_t place = 0;
    for (size_t d = 0; d < sizes.size(); ++d) place = place * sizes[d] + at[d];
    if (std::memcmp(all + static_cast<size_t>(place) * bytes, some + static_cast<size_t>(i) * bytes, bytes) !=
        0) {
      if (!rounding) rounding = rounding_of(longer);
      if (!(std::abs(longer.at(place) - shorter.at(i)) <= *rounding)) return false;
    }
    for (size_t d = own.size(); d-- > 0 && ++at[d] == own[d];) at[d] = 0;
  }
  return true;
}

}  // namespace

std::vector<int64_t> compared_lengths(int64_t longest) {
  std::vector<int64_t> lengths;
  for (const int64_t length : {int64_t{8}, int64_t{16}, longest / 2, longest - 1})
    if (length >= 2 && length < longest) lengths.push_back(length);
  return lengths;
}

void require_same_steps(const TokenGraph& longer, const TokenGraph& shorter,
                        const std::vector<Array>& given) {
  const Lengths lengths{longer.longest(), shorter.longest()};
  const DecodeShape shape{.rows = 1, .tokens = 2, .pages_of_row = 1, .pages = 1, .every = false};
  std::vector<Array> own, other;
  const Graph a = build_token_step(longer, shape, false, given, &own),
              b = build_token_step(shorter, shape, false, given, &other);
  const auto refuse = [&](const std::string& what) {
    fail<InputError>(
        "what it does to a token depends on how long the whole text is ({}, for texts of {} and of {} "
        "tokens)",
        what, lengths.longer, lengths.shorter);
  };
  for (int i = 0; i < std::min(a.size(), b.size()); ++i) {
    const Node &x = a.node(i), &y = b.node(i);
    const std::string place = x.origin.empty() ? std::string(x.op->name) : x.origin.str();
    if (x.op != y.op || x.operands != y.operands || x.types.size() != y.types.size())
      refuse(fmt::format("{} and {} in {}", x.op->name, y.op->name, place));
    const Array* const constant = a.constant_value({i, 0});
    if (constant) {
      if (!begins(*constant, *b.constant_value({i, 0}), lengths)) refuse("another number: " + place);
      continue;
    }
    bool same = true;
    for (size_t r = 0; r < x.types.size(); ++r) {
      if (!same_sizes(x.types[r].shape, y.types[r].shape, lengths)) refuse(place);
      same &= x.types[r].shape == y.types[r].shape;
    }
    // A table that a run learnt is cut to its length.
    if (same && !(x.attributes == y.attributes)) refuse(place);
  }
  if (a.size() != b.size() || own.size() != other.size()) refuse("other operators");
  for (size_t i = 0; i < own.size(); ++i)
    if (!begins(own[i], other[i], lengths)) refuse("other numbers: " + own[i].type().str());
}

}  // namespace millrace::optim
