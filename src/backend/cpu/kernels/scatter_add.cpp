#include <algorithm>
#include <cstring>

#include <millrace/operator.h>

#include "base/format.h"
#include "ops/axis.h"
#include "target/provider.h"

namespace millrace::cpu {
namespace {

/// base [outer, axis, inner], indices [count], updates [outer, count, inner].
struct Sizes {
  int64_t outer = 1, axis = 1, inner = 1, count = 1;
};

Sizes sizes_of(const KernelRequest& request) {
  const Shape& base = request.operand_type(0).shape;
  const int64_t axis = ops::axis_of(request.node.attributes, base.rank());
  Sizes s;
  for (int d = 0; d < axis; ++d) s.outer *= base[d].size();
  s.axis = base[static_cast<size_t>(axis)].size();
  for (int d = static_cast<int>(axis) + 1; d < base.rank(); ++d) s.inner *= base[d].size();
  s.count = request.operand_type(1).shape.count();
  return s;
}

class ScatterAdd : public ChunkedKernel {
 public:
  ScatterAdd(const Sizes& sizes, bool wide) : s_(sizes), wide_(wide) {
    // Enough ranges to keep many threads busy; each scans all indices, which costs little beside rows of
    // updates.
    const int64_t bytes = s_.outer * s_.axis * s_.inner * 4;
    ranges_ = std::clamp<int64_t>(bytes / (256 << 10), 1, 32);
    ranges_ = std::min(ranges_, std::max<int64_t>(s_.axis, 1));
  }

  int64_t chunks(int) const override { return s_.outer * ranges_; }
  double nanoseconds() const override {
    return 0.3 * static_cast<double>(s_.outer * (s_.axis + s_.count) * s_.inner) +
           static_cast<double>(s_.outer * ranges_ * s_.count);
  }

  void run_chunk(int, int64_t chunk, void* const* operands, void* const* results, void*) override {
    const auto* base = static_cast<const float*>(operands[0]);
    const auto* updates = static_cast<const float*>(operands[2]);
    auto* out = static_cast<float*>(results[0]);
    const int64_t o = chunk / ranges_, r = chunk % ranges_;
    const int64_t first = s_.axis * r / ranges_, last = s_.axis * (r + 1) / ranges_;
    const int64_t at = (o * s_.axis + first) * s_.inner;
    if (base != out)
      std::memcpy(out + at, base + at, static_cast<size_t>((last - first) * s_.inner) * sizeof(float));
    for (int64_t i = 0; i < s_.count; ++i) {
      const int64_t index =
          wide_ ? static_cast<const int64_t*>(operands[1])[i] : static_cast<const int32_t*>(operands[1])[i];
      if (index < first || index >= last) continue;
      float* to = out + (o * s_.axis + index) * s_.inner;
      const float* from = updates + (o * s_.count + i) * s_.inner;
      for (int64_t k = 0; k < s_.inner; ++k) to[k] += from[k];
    }
  }

  std::string description() const override {
    return fmt::format("{} ranges of the base", s_.outer * ranges_);
  }
  bool can_alias(int operand, int) const override { return operand == 0; }

 private:
  Sizes s_;
  bool wide_;  // i64 indices
  int64_t ranges_;
};

std::unique_ptr<Kernel> build_scatter_add(const KernelRequest& request) {
  return std::make_unique<ScatterAdd>(sizes_of(request), request.operand_type(1).dtype == i64);
}

/// Every chunk owns a range of the base and adds the updates that fall into it in their order, so the result
/// does not depend on the number of threads. Works in place on the base.
std::optional<std::string> why_no_scatter_add(const Graph& graph, const Node& node) {
  if (graph.type(node.operands[0]).dtype != f32) return "only f32";
  return std::nullopt;
}

}  // namespace

MILLRACE_PROVIDER(scatter_add){
    .name = "scatter-add", .doc = "scatter_add on f32, by ranges of the base", .place = 80, .make = [] {
      return kernels_of({{"scatter_add", build_scatter_add}}, why_no_scatter_add);
    }};

}  // namespace millrace::cpu
