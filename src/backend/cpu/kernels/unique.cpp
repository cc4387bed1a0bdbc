#include <algorithm>
#include <bit>
#include <limits>

#include <millrace/operator.h>

#include "target/provider.h"

namespace millrace::cpu {
namespace {

/// Rows become numbers that ascend as they do, and are sorted with the places where they stand.
class Unique : public ChunkedKernel {
 public:
  Unique(const Type& rows, bool sorted)
      : dtype_(rows.dtype), rows_(rows.shape[0].size()), width_(rows.shape[1].size()), sorted_(sorted) {}

  int64_t chunks(int) const override { return 1; }
  double nanoseconds() const override {
    return static_cast<double>(rows_ * (width_ + 5 * std::bit_width(static_cast<uint64_t>(rows_)))) + 100;
  }
  int64_t scratch_bytes() const override { return 8 * rows_ * (width_ + 2); }
  std::string description() const override { return "by sorting"; }

  void run_chunk(int, int64_t, void* const* operands, void* const* results, void* scratch) override {
    auto* const keys = static_cast<uint64_t*>(scratch);
    auto* const order = reinterpret_cast<int64_t*>(keys + rows_ * width_);
    auto* const begins = order + rows_;  // of those that are equal, in the order
    auto *const first = static_cast<int64_t*>(results[0]), *const many = static_cast<int64_t*>(results[1]),
                *const number = static_cast<int64_t*>(results[2]);
    const int64_t count = std::clamp<int64_t>(*static_cast<const int64_t*>(operands[1]), 0, rows_);
    for (int64_t i = 0; i < count * width_; ++i) keys[i] = key_of(operands[0], i);
    for (int64_t i = 0; i < count; ++i) order[i] = i;
    std::sort(order, order + count, [&](int64_t a, int64_t b) {
      const int found = compare(keys, a, b);
      return found < 0 || (found == 0 && a < b);
    });
    int64_t found = 0;
    for (int64_t i = 0; i < count; ++i)
      if (i == 0 || compare(keys, order[i - 1], order[i]) != 0) begins[found++] = i;
    for (int64_t k = 0; k < found; ++k) {
      const int64_t end = k + 1 < found ? begins[k + 1] : count;
      first[k] = order[begins[k]];
      many[k] = end - begins[k];
      for (int64_t i = begins[k]; i < end; ++i) number[order[i]] = k;
    }
    if (!sorted_) as_they_come(begins, found, count, first, many, number);
    std::fill(first + found, first + rows_, int64_t{0});
    std::fill(many + found, many + rows_, int64_t{0});
    std::fill(number + count, number + rows_, int64_t{0});
    *static_cast<int64_t*>(results[3]) = found;
  }

 private:
  /// Numbers of the sorted ones become those of the order in which they come; `room`: of `found` numbers.
  static void as_they_come(int64_t* room, int64_t found, int64_t count, int64_t* first, int64_t* many,
                           int64_t* number) {
    for (int64_t k = 0; k < found; ++k) room[k] = -1;
    int64_t met = 0;
    for (int64_t i = 0; i < count; ++i) {
      int64_t& place = room[number[i]];
      const bool fresh = place < 0;
      if (fresh) place = met++;
      number[i] = place;
      if (fresh) {
        first[place] = i;
        many[place] = 0;
      }
      ++many[place];
    }
  }

  int compare(const uint64_t* keys, int64_t a, int64_t b) const {
    for (int64_t k = 0; k < width_; ++k) {
      const uint64_t u = keys[a * width_ + k], v = keys[b * width_ + k];
      if (u != v) return u < v ? -1 : 1;
    }
    return 0;
  }

  uint64_t key_of(const void* rows, int64_t i) const {
    constexpr uint64_t sign = uint64_t{1} << 63;
    if (dtype_ == u64) return static_cast<const uint64_t*>(rows)[i];
    if (dtype_ == i64) return static_cast<const uint64_t*>(rows)[i] ^ sign;
    const double x = dtype_ == f64 ? static_cast<const double*>(rows)[i] : static_cast<const float*>(rows)[i];
    if (x != x) return std::numeric_limits<uint64_t>::max();
    const auto bits = std::bit_cast<uint64_t>(x == 0 ? 0.0 : x);  // -0 is 0
    return (bits & sign) != 0 ? ~bits : bits | sign;
  }

  DType dtype_;
  int64_t rows_, width_;
  bool sorted_;
};

std::unique_ptr<Kernel> build_unique(const KernelRequest& request) {
  return std::make_unique<Unique>(request.operand_type(0), request.node.attributes.flag("sorted"));
}

}  // namespace

MILLRACE_PROVIDER(unique){.name = "unique", .doc = "unique by sorting", .place = 103, .make = [] {
                            return kernels_of({{"unique", build_unique}});
                          }};

}  // namespace millrace::cpu
