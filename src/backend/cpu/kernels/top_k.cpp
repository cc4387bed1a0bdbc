#include <algorithm>

#include <millrace/operator.h>

#include "base/format.h"
#include "target/provider.h"

namespace millrace::cpu {
namespace {

/// The best so far stand in order in the result; few elements are better than the last of them, so that most
/// cost one comparison. Where many are wanted they are a heap until all were looked at.
class TopK : public ChunkedKernel {
 public:
  TopK(int64_t rows, int64_t size, int64_t k, bool wide)
      : rows_(rows), size_(size), k_(k), wide_(wide), rows_a_chunk_(std::max<int64_t>(1, 65536 / size)) {}

  int64_t chunks(int) const override { return (rows_ + rows_a_chunk_ - 1) / rows_a_chunk_; }
  double nanoseconds() const override { return static_cast<double>(rows_ * (size_ + 20 * k_)) + 100; }
  std::string description() const override { return k_ <= kFew ? "kept in order" : "by a heap"; }

  void run_chunk(int, int64_t chunk, void* const* operands, void* const* results, void*) override {
    auto* const positions = static_cast<int64_t*>(results[1]);
    for (int64_t row = chunk * rows_a_chunk_; row < std::min(rows_, (chunk + 1) * rows_a_chunk_); ++row) {
      if (wide_)
        find(static_cast<const double*>(operands[0]) + row * size_,
             static_cast<double*>(results[0]) + row * k_, positions + row * k_);
      else
        find(static_cast<const float*>(operands[0]) + row * size_, static_cast<float*>(results[0]) + row * k_,
             positions + row * k_);
    }
  }

 private:
  static constexpr int64_t kFew = 32;

  template <typename T>
  void find(const T* x, T* values, int64_t* positions) const {
    if (k_ > kFew) return find_many(x, values, positions);
    int64_t held = 0;
    for (int64_t i = 0; i < size_; ++i) {
      if (held == k_ && !(x[i] > values[k_ - 1])) continue;
      int64_t at = held < k_ ? held++ : k_ - 1;
      for (; at > 0 && x[i] > values[at - 1]; --at) {
        values[at] = values[at - 1];
        positions[at] = positions[at - 1];
      }
      values[at] = x[i];
      positions[at] = i;
    }
  }

  template <typename T>
  void find_many(const T* x, T* values, int64_t* positions) const {
    const auto better = [x](int64_t a, int64_t b) { return x[a] > x[b] || (x[a] == x[b] && a < b); };
    for (int64_t i = 0; i < k_; ++i) positions[i] = i;
    std::make_heap(positions, positions + k_, better);  // the worst is on top
    for (int64_t i = k_; i < size_; ++i) {
      if (!better(i, positions[0])) continue;
      std::pop_heap(positions, positions + k_, better);
      positions[k_ - 1] = i;
      std::push_heap(positions, positions + k_, better);
    }
    std::sort_heap(positions, positions + k_, better);
    for (int64_t i = 0; i < k_; ++i) values[i] = x[positions[i]];
  }

  int64_t rows_, size_, k_;
  bool wide_;  // f64
  int64_t rows_a_chunk_;
};

std::unique_ptr<Kernel> build_top_k(const KernelRequest& request) {
  const Type& type = request.operand_type(0);
  const int64_t size = type.shape.back().size();
  return std::make_unique<TopK>(type.shape.count() / size, size, request.node.attributes.integer("k"),
                                type.dtype == f64);
}

}  // namespace

MILLRACE_PROVIDER(top_k){.name = "top-k", .doc = "top_k in one pass over each row", .place = 105, .make = [] {
                           return kernels_of({{"top_k", build_top_k}});
                         }};

}  // namespace millrace::cpu
