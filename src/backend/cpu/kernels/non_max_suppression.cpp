#include <algorithm>
#include <array>
#include <limits>

#include <millrace/operator.h>

#include "base/format.h"
#include "target/provider.h"

namespace millrace::cpu {
namespace {

/// The best candidate that is left is taken from a heap and held against those that are kept, so that a class
/// costs its candidates times what is kept of them. First each class, then what they give is put together.
class NonMaxSuppression : public ChunkedKernel {
 public:
  NonMaxSuppression(const Shape& scores, int64_t most)
      : batch_(scores[0].size()),
        classes_(scores[1].size()),
        boxes_(scores[2].size()),
        most_(most),
        kept_(std::min(most, boxes_)) {}

  int stages() const override { return 2; }
  int64_t chunks(int stage) const override { return stage == 0 ? groups() : 1; }
  double nanoseconds() const override {
    return static_cast<double>(groups() * (4 * boxes_ + kept_ * kept_)) + 200;
  }
  int64_t scratch_bytes() const override { return groups() * group_bytes(); }
  std::string description() const override { return fmt::format("{} classes, by a heap", groups()); }

  void run_chunk(int stage, int64_t chunk, void* const* operands, void* const* results,
                 void* scratch) override {
    if (stage == 1)
      join(static_cast<char*>(scratch), static_cast<int64_t*>(results[0]), static_cast<int64_t*>(results[1]));
    else
      find(chunk, operands, static_cast<char*>(scratch) + chunk * group_bytes());
  }

 private:
  /// What is kept of a class: how many, who, and their corners and areas.
  struct Kept {
    int64_t* count;
    int32_t* box;
    std::array<float*, 5> of;  // top, left, bottom, right, area
  };

  int64_t groups() const { return batch_ * classes_; }
  int64_t group_bytes() const { return (8 + 4 * (6 * kept_ + boxes_) + 63) / 64 * 64; }
  Kept kept_at(char* memory) const {
    Kept kept{reinterpret_cast<int64_t*>(memory), reinterpret_cast<int32_t*>(memory + 8), {}};
    for (size_t k = 0; k < 5; ++k)
      kept.of[k] = reinterpret_cast<float*>(memory + 8) + static_cast<int64_t>(k + 1) * kept_;
    return kept;
  }

  void find(int64_t group, void* const* operands, char* memory) const {
    const auto* const corners = static_cast<const float*>(operands[0]) + group / classes_ * boxes_;
    const auto* const scores = static_cast<const float*>(operands[1]) + group * boxes_;
    const auto* const candidates = static_cast<const uint8_t*>(operands[2]) + group * boxes_;
    const float share = *static_cast<const float*>(operands[3]);
    const int64_t most = std::min(kept_, *static_cast<const int64_t*>(operands[4]));
    const Kept kept = kept_at(memory);
    auto* const heap = kept.box + 6 * kept_;
    auto* end = heap;
    for (int64_t i = 0; i < boxes_; ++i)
      if (candidates[i] != 0) *end++ = static_cast<int32_t>(i);
    const auto score = [scores](int32_t i) {
      return scores[i] != scores[i] ? -std::numeric_limits<float>::infinity() : scores[i];
    };
    const auto worse = [&](int32_t a, int32_t b) {
      return score(a) < score(b) || (score(a) == score(b) && a > b);
    };
    std::make_heap(heap, end, worse);
    int64_t count = 0;
    while (count < most && end != heap) {
      std::pop_heap(heap, end, worse);
      const int32_t best = *--end;
      std::array<float, 5> own{};
      for (int64_t k = 0; k < 4; ++k) own[static_cast<size_t>(k)] = corners[k * batch_ * boxes_ + best];
      own[4] = (own[2] - own[0]) * (own[3] - own[1]);
      if (is_covered(kept, count, own, share)) continue;
      kept.box[count] = best;
      for (size_t k = 0; k < 5; ++k) kept.of[k][count] = own[k];
      ++count;
    }
    *kept.count = count;
  }

  static bool is_covered(const Kept& kept, int64_t count, const std::array<float, 5>& own, float share) {
    constexpr int64_t block = 32;
    for (int64_t from = 0; from < count; from += block) {
      int covered = 0;
      for (int64_t k = from; k < std::min(count, from + block); ++k) {
        const auto length = [&](size_t low, size_t high) {
          const float x = std::min(kept.of[high][k], own[high]) - std::max(kept.of[low][k], own[low]);
          return x > 0 ? x : 0;
        };
        const float both = length(0, 2) * length(1, 3), either = kept.of[4][k] + own[4] - both;
        covered |= (either > 0 ? both / either : 0) > share;
      }
      if (covered != 0) return true;
    }
    return false;
  }

  void join(char* memory, int64_t* rows, int64_t* many) const {
    int64_t count = 0;
    for (int64_t g = 0; g < groups(); ++g) {
      const Kept kept = kept_at(memory + g * group_bytes());
      for (int64_t i = 0; i < *kept.count; ++i, ++count) {
        rows[3 * count] = g / classes_;
        rows[3 * count + 1] = g % classes_;
        rows[3 * count + 2] = kept.box[i];
      }
    }
    std::fill(rows + 3 * count, rows + 3 * groups() * most_, int64_t{0});
    *many = count;
  }

  int64_t batch_, classes_, boxes_, most_, kept_;
};

std::unique_ptr<Kernel> build_suppression(const KernelRequest& request) {
  return std::make_unique<NonMaxSuppression>(request.operand_type(1).shape,
                                             request.node.attributes.shape("most")[0].size());
}

std::optional<std::string> why_no_suppression(const Graph& graph, const Node& node) {
  if (graph.type(node.operands[1]).shape.back().size() > INT32_MAX) return "more than 2^31 boxes";
  return std::nullopt;
}

}  // namespace

MILLRACE_PROVIDER(non_max_suppression){
    .name = "non-max-suppression", .doc = "non_max_suppression, class by class", .place = 102, .make = [] {
      return kernels_of({{"non_max_suppression", build_suppression}}, why_no_suppression);
    }};

}  // namespace millrace::cpu
