#include <algorithm>
#include <cstring>
#include <vector>

#include <millrace/operator.h>

#include "target/provider.h"

namespace millrace::cpu {
namespace {

/// One pass over the mask, eight elements at a time where none of them holds.
class NonZero : public ChunkedKernel {
 public:
  explicit NonZero(const Shape& shape) : sizes_(shape.sizes()), count_(shape.count()) {}

  int64_t chunks(int) const override { return 1; }
  double nanoseconds() const override {
    return static_cast<double>(count_ * (1 + static_cast<int64_t>(sizes_.size()))) + 100;
  }
  std::string description() const override { return "in one pass"; }

  void run_chunk(int, int64_t, void* const* operands, void* const* results, void*) override {
    const auto* const mask = static_cast<const uint8_t*>(operands[0]);
    auto* const places = static_cast<int64_t*>(results[0]);
    const size_t rank = sizes_.size();
    const int64_t width = sizes_.back();
    std::vector<int64_t> at(rank, 0);
    int64_t found = 0;
    for (int64_t row = 0; row < count_; row += width) {
      for (int64_t k = 0; k < width; ++k) {
        k += zeros(mask + row + k, width - k);
        if (k == width) break;
        for (size_t d = 0; d + 1 < rank; ++d) places[static_cast<int64_t>(d) * count_ + found] = at[d];
        places[static_cast<int64_t>(rank - 1) * count_ + found] = k;
        ++found;
      }
      for (size_t d = rank - 1; d-- > 0 && ++at[d] == sizes_[d];) at[d] = 0;
    }
    for (size_t d = 0; d < rank; ++d)
      std::fill_n(places + static_cast<int64_t>(d) * count_ + found, count_ - found, int64_t{0});
    *static_cast<int64_t*>(results[1]) = found;
  }

 private:
  /// How many of `size` elements come before the first one that holds.
  static int64_t zeros(const uint8_t* mask, int64_t size) {
    int64_t k = 0;
    for (uint64_t eight = 0; k + 8 <= size; k += 8) {
      std::memcpy(&eight, mask + k, 8);
      if (eight != 0) break;
    }
    while (k < size && mask[k] == 0) ++k;
    return k;
  }

  std::vector<int64_t> sizes_;
  int64_t count_;
};

std::unique_ptr<Kernel> build_nonzero(const KernelRequest& request) {
  return std::make_unique<NonZero>(request.operand_type(0).shape);
}

}  // namespace

MILLRACE_PROVIDER(nonzero){.name = "nonzero", .doc = "nonzero in one pass", .place = 101, .make = [] {
                             return kernels_of({{"nonzero", build_nonzero}});
                           }};

}  // namespace millrace::cpu
