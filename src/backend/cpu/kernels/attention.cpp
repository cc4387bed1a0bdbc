#include "backend/cpu/kernels/attention.h"

#include <algorithm>
#include <cmath>

#include "backend/cpu/kernels/attention_problem.h"
#include "backend/cpu/slot.h"
#include "base/format.h"
#include "ir/operator.h"

namespace millrace::cpu {
namespace {

constexpr int64_t block = attention_block;
constexpr float kNone = -1e30f;  // the highest score of a query that sees no key

/// A chunk has some blocks of queries of one head; scores stand transposed, keys in rows and queries in lanes, so that
/// k and v are read where they lie, an element at a time, and maxima and sums need no work across lanes.
class AttentionForward : public Kernel {
 public:
  AttentionForward(const AttentionProblem& problem, const AttentionMath& math) : p_(problem), math_(math) {
    const int64_t blocks = (p_.queries + block - 1) / block;
    // A chunk is worth some 50 µs at least.
    const double work = 2e-5 * static_cast<double>(block * p_.keys * (p_.width + p_.value_width));
    per_chunk_ =
        std::clamp<int64_t>(static_cast<int64_t>(50 / std::max(work, 1.0)), 1, std::max<int64_t>(blocks, 1));
    chunks_ = (blocks + per_chunk_ - 1) / per_chunk_;
    const int64_t all = p_.batch * p_.heads * chunks_;
    slots_ = static_cast<int>(std::min<int64_t>({all, available_cpus(), 64}));
    slot_bytes_ = take(nullptr).bytes;
  }

  void run(void* const* operands, void* const* results, void* scratch, ThreadPool& pool) override {
    pool.parallel(p_.batch * p_.heads * chunks_, [&](int64_t chunk) {
      const Slot slot(taken_, slots_);
      const Tiles tiles = take(static_cast<char*>(scratch) + slot.index() * slot_bytes_);
      const int64_t head = chunk / chunks_, first = chunk % chunks_ * per_chunk_ * block;
      const int64_t end = std::min(p_.queries, first + per_chunk_ * block);
      for (int64_t query = first; query < end; query += block)
        attend(operands, results, tiles, head / p_.heads, head % p_.heads, query);
    });
  }

  int64_t scratch_bytes() const override { return slots_ * slot_bytes_; }
  std::string description() const override {
    return fmt::format("tiles of {} queries × {} keys, {}, {} chunks", block, block, math_.name,
                       p_.batch * p_.heads * chunks_);
  }

 private:
  struct Tiles {
    float *q, *scores, *mixed, *highest, *sum, *factor, *bias, *rows, *keys, *values;
    int64_t bytes;
  };

  Tiles take(void* base) const {
    Scratch s(base);
    const bool narrow = p_.dtype != f32;
    const int64_t widest = std::max(p_.width, p_.value_width);
    Tiles t{s.floats(p_.width * block),
            s.floats(block * block),
            s.floats(p_.value_width * block),
            s.floats(block),
            s.floats(block),
            s.floats(block),
            s.floats(p_.mask ? block * block : 0),
            s.floats(block * widest),
            s.floats(narrow ? block * p_.width : 0),
            s.floats(narrow ? block * p_.value_width : 0),
            0};
    t.bytes = s.used();
    return t;
  }

  void attend(void* const* operands, void* const* results, const Tiles& t, int64_t b, int64_t h,
              int64_t query) const {
    const int64_t queries = std::min(block, p_.queries - query), shared = h / (p_.heads / p_.shared);
    const int64_t columns = (queries + math_.lanes - 1) / math_.lanes * math_.lanes;
    const Rows q = rows_of(operands[p_.q.buffer], p_.q, p_.dtype, b, h, query, queries, p_.width, t.rows);
    transposed(math_, q, queries, p_.width, t.q, p_.scale);
    std::fill_n(t.mixed, p_.value_width * block, 0.0f);
    std::fill_n(t.highest, block, kNone);
    std::fill_n(t.sum, block, 0.0f);
    const int64_t end = p_.keys_seen(query + queries);
    for (int64_t key = 0, keys = 0; key < end; key += keys) {
      const Tile tile = tile_of(math_, p_, key, std::min(block, end - key), query, queries);
      keys = tile.keys;
      const Rows k = rows_of(operands[p_.k.buffer], p_.k, p_.dtype, b, shared, key, keys, p_.width, t.keys);
      const Rows v =
          rows_of(operands[p_.v.buffer], p_.v, p_.dtype, b, shared, key, keys, p_.value_width, t.values);
      const int64_t left = tile.columns;
      float *const scores = t.scores + tile.skip, *const mixed = t.mixed + tile.skip;
      math_.multiply(k.data, k.row, k.column, t.q + tile.skip, block, scores, block, keys, left, p_.width,
                     false);
      mask_scores(math_, p_, p_.mask ? operands[p_.mask->view.buffer] : nullptr, b, h, key, keys,
                  query + tile.skip, queries - tile.skip, scores, t.bias);
      if (math_.softmax(scores, keys, left, t.highest + tile.skip, t.sum + tile.skip, t.factor + tile.skip))
        math_.scale(mixed, p_.value_width, left, t.factor + tile.skip);
      math_.multiply(v.data, v.column, v.row, scores, block, mixed, block, p_.value_width, left, keys, true);
    }
    finish(results, t, b, h, query, queries, columns);
  }

  void finish(void* const* results, const Tiles& t, int64_t b, int64_t h, int64_t query, int64_t queries,
              int64_t columns) const {
    const TensorView& view = p_.log_sum;
    auto* const log_sum = static_cast<float*>(results[view.buffer]);
    for (int64_t i = 0; i < queries; ++i) {
      // The sum of a query that sees a key is at least 1.
      const float sum = t.sum[i] < 1 ? 1 : t.sum[i];
      t.factor[i] = 1 / sum;
      log_sum[view.at(b, h, query + i)] = t.highest[i] > kNone ? t.highest[i] + std::log(sum) : 0;
    }
    math_.scale(t.mixed, p_.value_width, columns, t.factor);
    float* const result = static_cast<float*>(results[p_.result.buffer]);
    if (p_.dtype == f32 && p_.result.strides[3] == 1)
      return math_.transpose(t.mixed, block, p_.value_width, queries, result + p_.result.at(b, h, query),
                             p_.result.strides[2], 1);
    math_.transpose(t.mixed, block, p_.value_width, queries, t.rows, p_.value_width, 1);
    write_rows(result, p_.result, p_.dtype, b, h, query, queries, p_.value_width, t.rows, p_.value_width, 1);
  }

  const AttentionProblem p_;
  const AttentionMath& math_;
  int64_t per_chunk_, chunks_;  // blocks of queries; chunks of a head
  int slots_;
  int64_t slot_bytes_;
  std::atomic<uint64_t> taken_{0};
};

class AttentionProvider : public Provider {
 public:
  std::string name() const override { return "kernels"; }

  std::optional<std::string> why_not(const Graph& graph, const Node& node) const override {
    if (!is_attention(node)) return "only attention";
    const DType dtype = node.types[0].dtype;
    if (dtype != f32 && dtype != bf16) return fmt::format("only f32 and bf16, not {}", dtype.name());
    for (const Value& operand : node.operands)
      if (graph.type(operand).shape.count() == 0) return "an operand is empty";
    return std::nullopt;
  }

  /// Tensors of four dimensions in any layout; rows of queries and the mask row-major.
  LayoutWish layouts(const Graph& /*graph*/, const Node& node) const override {
    LayoutWish wish;
    const bool packed = node.op->name.starts_with("self"), backward = is_attention_backward(node);
    const size_t tensors = (packed ? 1 : 3) + (backward ? 1 : 0);
    for (size_t i = 0; i < node.operands.size(); ++i)
      wish.operands.push_back(i < tensors ? std::nullopt : std::optional<Layout>(Layout{}));
    for (const Type& type : node.types)
      wish.results.push_back(type.shape.rank() == 4 ? std::nullopt : std::optional<Layout>(Layout{}));
    return wish;
  }

  std::unique_ptr<Kernel> build(const KernelRequest& request) const override {
    const AttentionProblem problem = attention_problem(request);
    const AttentionMath& math = *attention_maths().front();
    return is_attention_backward(request.node) ? make_attention_backward(problem, math)
                                               : make_attention_forward(problem, math);
  }
};

}  // namespace

std::unique_ptr<Kernel> make_attention_forward(const AttentionProblem& problem, const AttentionMath& math) {
  return std::make_unique<AttentionForward>(problem, math);
}

std::unique_ptr<Provider> make_attention_provider() { return std::make_unique<AttentionProvider>(); }

}  // namespace millrace::cpu
