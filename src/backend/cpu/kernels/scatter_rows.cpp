#include <algorithm>
#include <cstring>

#include <millrace/operator.h>

#include "base/format.h"
#include "target/provider.h"

namespace millrace::cpu {
namespace {

/// Chunks are ranges of the base's rows; each goes through the indices from the last to the first, so that of
/// equal ones the first counts.
class ScatterRows : public ChunkedKernel {
 public:
  ScatterRows(int64_t rows, int64_t row_bytes, int64_t count, bool wide)
      : rows_(rows), row_bytes_(row_bytes), count_(count), wide_(wide) {
    const int64_t by_work = std::max(rows * row_bytes / (1 << 20), count * row_bytes / (64 << 10));
    ranges_ = std::clamp<int64_t>(by_work, 1, std::min<int64_t>(8, std::max<int64_t>(rows, 1)));
  }

  int64_t chunks(int) const override { return ranges_; }
  double nanoseconds() const override {
    return static_cast<double>(rows_ * row_bytes_) / 5 + static_cast<double>(count_) * 10 + 100;
  }
  std::string description() const override { return fmt::format("{} ranges of the base", ranges_); }
  bool can_alias(int operand, int) const override { return operand == 0; }

  void run_chunk(int, int64_t chunk, void* const* operands, void* const* results, void*) override {
    const int64_t first = rows_ * chunk / ranges_, last = rows_ * (chunk + 1) / ranges_;
    const auto* base = static_cast<const char*>(operands[0]);
    auto* out = static_cast<char*>(results[0]);
    if (base != out)
      std::memcpy(out + first * row_bytes_, base + first * row_bytes_,
                  static_cast<size_t>((last - first) * row_bytes_));
    const auto* rows = static_cast<const char*>(operands[2]);
    if (wide_)
      write(static_cast<const int64_t*>(operands[1]), rows, out, first, last);
    else
      write(static_cast<const int32_t*>(operands[1]), rows, out, first, last);
  }

 private:
  template <typename Index>
  void write(const Index* indices, const char* rows, char* out, int64_t first, int64_t last) const {
    for (int64_t i = count_; i-- > 0;) {
      const int64_t index = indices[i];
      if (index >= first && index < last)
        std::memcpy(out + index * row_bytes_, rows + i * row_bytes_, static_cast<size_t>(row_bytes_));
    }
  }

  int64_t rows_, row_bytes_, count_;
  bool wide_;  // i64 indices
  int64_t ranges_;
};

std::unique_ptr<Kernel> build_scatter_rows(const KernelRequest& request) {
  const Type& base = request.operand_type(0);
  const int64_t rows = base.shape[0].size();
  return std::make_unique<ScatterRows>(rows, rows > 0 ? base.bytes() / rows : 0,
                                       request.operand_type(1).shape.count(),
                                       request.operand_type(1).dtype == i64);
}

}  // namespace

MILLRACE_PROVIDER(scatter_rows){
    .name = "scatter-rows", .doc = "rows written into a table", .place = 90, .make = [] {
      return kernels_of({{"scatter_rows", build_scatter_rows}});
    }};

}  // namespace millrace::cpu
