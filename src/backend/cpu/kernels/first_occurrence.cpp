#include <algorithm>
#include <bit>
#include <cstring>

#include <millrace/operator.h>

#include "base/format.h"
#include "target/provider.h"

namespace millrace::cpu {
namespace {

/// A table of positions with open addressing, cut into ranges: a chunk looks at all elements and handles
/// those that hash into its range, in order. So what comes first is found first, whichever thread runs the
/// chunk.
class FirstOccurrence : public ChunkedKernel {
 public:
  FirstOccurrence(int64_t count, bool wide) : count_(count), wide_(wide) {
    const auto ranges = static_cast<uint64_t>(std::clamp<int64_t>(count / 4096, 1, 16));
    ranges_ = static_cast<int64_t>(std::bit_floor(ranges));
    range_bits_ = std::bit_width(std::bit_ceil(static_cast<uint64_t>(2 * count / ranges_ + 16))) - 1;
  }

  int64_t chunks(int) const override { return ranges_; }
  double nanoseconds() const override { return static_cast<double>(count_ * (ranges_ + 8) + 100); }
  int64_t scratch_bytes() const override { return (ranges_ << range_bits_) * 4; }
  std::string description() const override { return fmt::format("hashed into {} ranges", ranges_); }

  void run_chunk(int, int64_t chunk, void* const* operands, void* const* results, void* scratch) override {
    auto* table = static_cast<int32_t*>(scratch) + (chunk << range_bits_);
    auto* out = static_cast<int32_t*>(results[0]);
    if (wide_)
      find(chunk, static_cast<const int64_t*>(operands[0]), table, out);
    else
      find(chunk, static_cast<const int32_t*>(operands[0]), table, out);
  }

 private:
  template <typename Key>
  void find(int64_t range, const Key* keys, int32_t* table, int32_t* out) const {
    const int64_t size = int64_t{1} << range_bits_, mask = size - 1;
    std::memset(table, 0xff, static_cast<size_t>(size) * sizeof *table);
    const int shift = 64 - range_bits_;
    for (int64_t i = 0; i < count_; ++i) {
      const uint64_t hash = static_cast<uint64_t>(keys[i]) * 0x9e3779b97f4a7c15u;
      if (static_cast<int64_t>(hash >> 20 & static_cast<uint64_t>(ranges_ - 1)) != range) continue;
      auto at = static_cast<int64_t>(hash >> shift);
      int64_t tries = 0;
      while (table[at] >= 0 && keys[table[at]] != keys[i] && tries < size) {
        at = (at + 1) & mask;
        ++tries;
      }
      if (tries == size) {  // the range is full, which only keys made for it do: look at all before
        int64_t first = 0;
        while (keys[first] != keys[i]) ++first;
        out[i] = static_cast<int32_t>(first);
        continue;
      }
      if (table[at] < 0) table[at] = static_cast<int32_t>(i);
      out[i] = table[at];
    }
  }

  int64_t count_;
  bool wide_;  // i64
  int64_t ranges_;
  int range_bits_;
};

std::unique_ptr<Kernel> build_first(const KernelRequest& request) {
  const Type& type = request.operand_type(0);
  return std::make_unique<FirstOccurrence>(type.shape.count(), type.dtype == i64);
}

std::optional<std::string> why_no_first(const Graph& graph, const Node& node) {
  if (graph.type(node.operands[0]).shape.count() > INT32_MAX) return "more than 2^31 elements";
  return std::nullopt;
}

}  // namespace

MILLRACE_PROVIDER(first_occurrence){
    .name = "first-occurrence", .doc = "first_occurrence by hashing", .place = 100, .make = [] {
      return kernels_of({{"first_occurrence", build_first}}, why_no_first);
    }};

}  // namespace millrace::cpu
