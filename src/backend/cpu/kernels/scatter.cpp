#include <algorithm>
#include <cstring>
#include <type_traits>

#include <millrace/operator.h>

#include "base/format.h"
#include "ops/axis.h"
#include "target/provider.h"

namespace millrace::cpu {
namespace {

/// base [outer, axis, inner], indices [count], updates [outer, count, inner]. Every chunk owns a range of the
/// base's rows and goes through all indices, so the result does not depend on the number of threads. Works in
/// place on the base.
class Scatter : public ChunkedKernel {
 public:
  enum class How { writes, adds, most, least };

  Scatter(const KernelRequest& request, How how)
      : how_(how),
        wide_(request.operand_type(1).dtype == i64),
        count_(request.operand_type(1).shape.count()),
        row_bytes_(request.operand_type(0).dtype.bytes()) {
    const Shape& base = request.operand_type(0).shape;
    const int64_t axis = how == How::adds ? ops::axis_of(request.node.attributes, base.rank()) : 0;
    for (int d = 0; d < base.rank(); ++d)
      (d < axis ? outer_ : d == axis ? axis_ : row_bytes_) *= base[d].size();
    // Enough ranges to keep many threads busy; each scans all indices, which costs little beside rows.
    const int64_t bytes = outer_ * axis_ * row_bytes_;
    if (how != How::writes)
      ranges_ = std::clamp<int64_t>(bytes / (256 << 10), 1, 32);
    else
      ranges_ = std::clamp<int64_t>(std::max(bytes / (1 << 20), count_ * row_bytes_ / (64 << 10)), 1, 8);
    ranges_ = std::min(ranges_, std::max<int64_t>(axis_, 1));
  }

  int64_t chunks(int) const override { return outer_ * ranges_; }
  double nanoseconds() const override {
    if (how_ == How::writes)
      return static_cast<double>(axis_ * row_bytes_) / 5 + static_cast<double>(count_) * 10 + 100;
    const int64_t row = row_bytes_ / 4;  // numbers
    return 0.3 * static_cast<double>(outer_ * (axis_ + count_) * row) +
           static_cast<double>(outer_ * ranges_ * count_);
  }
  std::string description() const override { return fmt::format("{} ranges of the base", outer_ * ranges_); }
  bool can_alias(int operand, int) const override { return operand == 0; }

  void run_chunk(int, int64_t chunk, void* const* operands, void* const* results, void*) override {
    const int64_t o = chunk / ranges_, r = chunk % ranges_;
    const int64_t first = axis_ * r / ranges_, last = axis_ * (r + 1) / ranges_;
    const auto* base = static_cast<const char*>(operands[0]) + o * axis_ * row_bytes_;
    auto* out = static_cast<char*>(results[0]) + o * axis_ * row_bytes_;
    if (base != out)
      std::memcpy(out + first * row_bytes_, base + first * row_bytes_,
                  static_cast<size_t>((last - first) * row_bytes_));
    const auto* rows = static_cast<const char*>(operands[2]) + o * count_ * row_bytes_;
    if (wide_)
      update(static_cast<const int64_t*>(operands[1]), rows, out, first, last);
    else
      update(static_cast<const int32_t*>(operands[1]), rows, out, first, last);
  }

 private:
  template <typename Index>
  void update(const Index* indices, const char* rows, char* out, int64_t first, int64_t last) const {
    const auto* const numbers = reinterpret_cast<const float*>(rows);
    auto* const to = reinterpret_cast<float*>(out);
    if (how_ == How::adds) return add(indices, numbers, to, first, last);
    if (how_ != How::writes) return take_extremes(indices, numbers, to, first, last);
    if (row_bytes_ == 4) return write(indices, rows, out, first, last, std::integral_constant<int64_t, 4>());
    if (row_bytes_ == 8) return write(indices, rows, out, first, last, std::integral_constant<int64_t, 8>());
    write(indices, rows, out, first, last, row_bytes_);
  }

  /// From the last to the first: of equal indices the first one counts. `bytes`: of a row.
  template <typename Index, typename Bytes>
  void write(const Index* indices, const char* rows, char* out, int64_t first, int64_t last,
             Bytes bytes) const {
    for (int64_t i = count_; i-- > 0;) {
      const int64_t index = indices[i];
      if (index >= first && index < last)
        std::memcpy(out + index * bytes, rows + i * bytes, static_cast<size_t>(bytes));
    }
  }

  template <typename Index>
  void add(const Index* indices, const float* updates, float* out, int64_t first, int64_t last) const {
    const int64_t inner = row_bytes_ / 4;
    for (int64_t i = 0; i < count_; ++i) {
      const int64_t index = indices[i];
      if (index < first || index >= last) continue;
      float* to = out + index * inner;
      const float* from = updates + i * inner;
      for (int64_t k = 0; k < inner; ++k) to[k] += from[k];
    }
  }

  /// Of single numbers; one that is none stays.
  template <typename Index>
  void take_extremes(const Index* indices, const float* updates, float* out, int64_t first,
                     int64_t last) const {
    const bool least = how_ == How::least;
    for (int64_t i = 0; i < count_; ++i) {
      const int64_t index = indices[i];
      if (index >= last || index < first) continue;
      const float x = updates[i];
      if (x != x || (least ? x < out[index] : x > out[index])) out[index] = x;
    }
  }

  How how_;
  bool wide_;  // i64 indices
  int64_t count_, row_bytes_, outer_ = 1, axis_ = 1, ranges_ = 1;
};

std::unique_ptr<Kernel> build_scatter_add(const KernelRequest& request) {
  return std::make_unique<Scatter>(request, Scatter::How::adds);
}

std::unique_ptr<Kernel> build_scatter_rows(const KernelRequest& request) {
  return std::make_unique<Scatter>(request, Scatter::How::writes);
}

std::unique_ptr<Kernel> build_scatter_extreme(const KernelRequest& request) {
  const bool least = request.node.attributes.flag("least");
  return std::make_unique<Scatter>(request, least ? Scatter::How::least : Scatter::How::most);
}

std::optional<std::string> why_no_scatter_of_numbers(const Graph& graph, const Node& node) {
  if (graph.type(node.operands[0]).dtype != f32) return "only f32";
  return std::nullopt;
}

}  // namespace

MILLRACE_PROVIDER(scatter_add){
    .name = "scatter-add", .doc = "scatter_add on f32, by ranges of the base", .place = 80, .make = [] {
      return kernels_of({{"scatter_add", build_scatter_add}}, why_no_scatter_of_numbers);
    }};
MILLRACE_PROVIDER(scatter_extreme){
    .name = "scatter-extreme",
    .doc = "scatter_extreme on f32, by ranges of the base",
    .place = 81,
    .make = [] {
      return kernels_of({{"scatter_extreme", build_scatter_extreme}}, why_no_scatter_of_numbers);
    }};
MILLRACE_PROVIDER(scatter_rows){
    .name = "scatter-rows", .doc = "rows written into a table", .place = 90, .make = [] {
      return kernels_of({{"scatter_rows", build_scatter_rows}});
    }};

}  // namespace millrace::cpu
