// Attention with products in bf16, forward and backward. What is a sum, a score or a weight's exponent stays
// f32; weights and the gradients of scores are rounded before their products.
#include <algorithm>

#include "backend/cpu/kernels/attention/kernels.h"

namespace millrace::cpu {
namespace {

constexpr int64_t block = attention_block;

int64_t pairs_of(int64_t count) { return (count + 1) / 2; }

/// Around the products of a tile.
class Products {
 public:
  explicit Products(const AttentionBf16Math& math) : math_(math) {
    if (math_.begin) math_.begin();
  }
  ~Products() {
    if (math_.end) math_.end();
  }
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;

 private:
  const AttentionBf16Math& math_;
};

/// Pairs as the left side of a product, element by element: neighbours are 2 apart.
const uint16_t* elements(const uint32_t* pairs) { return reinterpret_cast<const uint16_t*>(pairs); }

class AttentionForwardBf16 : public AttentionForward {
 public:
  AttentionForwardBf16(const AttentionProblem& problem, const AttentionBf16Math& bf16)
      : AttentionForward(problem, attention_math_avx512()), bf16_(bf16) {}
  std::unique_ptr<Kernel> another() const override { return std::make_unique<AttentionForwardBf16>(*this); }

 protected:
  struct Own {
    uint32_t *q, *weights, *values;  // in pairs: of the width, and of keys
    uint16_t* rows;                  // a copy of what has no pairs where it lies
    int64_t bytes;
  };

  const char* arithmetic() const override { return bf16_.name; }
  int64_t own_bytes() const override { return own(nullptr).bytes; }
  int64_t value_row() const { return (p_.value_width + 15) / 16 * 16; }

  Own own(void* base) const {
    Scratch s(base);
    return {s.take<uint32_t>(pairs_of(p_.width) * block), s.take<uint32_t>(block / 2 * block),
            s.take<uint32_t>(block / 2 * value_row()),
            s.take<uint16_t>(block * 2 * pairs_of(std::max(p_.width, p_.value_width))), s.used()};
  }

  void read_queries(const Block& b) const override {
    const Own o = own(b.tiles.own);
    const PairedRows q =
        paired_rows_of(b.operands[p_.q.buffer], p_.q, b.batch, b.head, b.query, b.queries, p_.width, o.rows);
    bf16_.pair_columns(q.data, q.row, b.queries, 2 * pairs_of(p_.width), o.q);
  }

  void run_tile(const Block& b, const Tile& tile, int64_t key) const override {
    const Products products(bf16_);
    const Tiles& t = b.tiles;
    const Own o = own(t.own);
    const int64_t skip = tile.skip, columns = tile.columns;
    float *const scores = t.scores + skip, *const mixed = t.mixed + skip;
    const PairedRows k =
        paired_rows_of(b.operands[p_.k.buffer], p_.k, b.batch, b.shared, key, tile.keys, p_.width, o.rows);
    bf16_.multiply(k.data, k.row, 2, o.q + skip, block, scores, block, tile.keys, columns, pairs_of(p_.width),
                   p_.scale, false);
    mask_scores(math_, p_, b.operands, b.batch, b.head, key, tile, b.query, b.queries, scores, t.bias);
    if (bf16_.softmax(scores, o.weights + skip, tile.keys, columns, t.highest + skip, t.sum + skip,
                      t.factor + skip))
      math_.scale(mixed, p_.value_width, columns, t.factor + skip);
    const PairedRows v = paired_rows_of(b.operands[p_.v.buffer], p_.v, b.batch, b.shared, key, tile.keys,
                                        p_.value_width, o.rows);
    bf16_.pair_rows(v.data, v.row, tile.keys, p_.value_width, o.values, value_row());
    bf16_.multiply(elements(o.values), 2, 2 * value_row(), o.weights + skip, block, mixed, block,
                   p_.value_width, columns, pairs_of(tile.keys), 1, true);
  }

 private:
  const AttentionBf16Math& bf16_;
};

class AttentionBackwardBf16 : public AttentionBackward {
 public:
  AttentionBackwardBf16(const AttentionProblem& problem, const AttentionBf16Math& bf16)
      : AttentionBackward(problem, attention_math_avx512()), bf16_(bf16) {}
  std::unique_ptr<Kernel> another() const override { return std::make_unique<AttentionBackwardBf16>(*this); }

 protected:
  struct Own {
    uint32_t *q_rows, *q_columns, *g_rows, *g_columns;  // pairs of queries, and of the width
    uint32_t* key_pairs;                                // pairs of keys
    uint16_t *keys, *values;                            // copies of k and v that have no pairs where they lie
    uint16_t *weights, *gradients;                      // of scores
    uint32_t* gradient_pairs;                           // of keys
    int64_t bytes;
  };

  const char* arithmetic() const override { return bf16_.name; }
  int64_t own_bytes() const override { return own(nullptr).bytes; }

  Own own(void* base) const {
    Scratch s(base);
    const int64_t queries = packed_queries(), width = pairs_of(p_.width), values = pairs_of(p_.value_width);
    return {s.take<uint32_t>(queries / 2 * lanes_of(p_.width)),
            s.take<uint32_t>(queries * width),
            s.take<uint32_t>(queries / 2 * lanes_of(p_.value_width)),
            s.take<uint32_t>(queries * values),
            s.take<uint32_t>(block / 2 * lanes_of(p_.width)),
            s.take<uint16_t>(block * 2 * width),
            s.take<uint16_t>(block * 2 * values),
            s.take<uint16_t>(block * block),
            s.take<uint16_t>(block * block),
            s.take<uint32_t>(block / 2 * block),
            s.used()};
  }

  void read_head(const Chunk& c, int64_t head) const override {
    const Own o = own(c.tiles.own);
    const auto one = [&](const TensorView& view, int64_t width, uint16_t* copy, uint32_t* rows,
                         uint32_t* columns) {
      for (int64_t query = 0; query < p_.queries; query += block) {
        const int64_t count = std::min(block, p_.queries - query);
        const PairedRows from =
            paired_rows_of(c.operands[view.buffer], view, c.batch, head, query, count, width, copy);
        bf16_.pair_rows(from.data, from.row, count, width, rows + query / 2 * lanes_of(width),
                        lanes_of(width));
        bf16_.pair_columns(from.data, from.row, count, 2 * pairs_of(width),
                           columns + query * pairs_of(width));
      }
    };
    // The copies of k and v come later.
    one(p_.q, p_.width, o.keys, o.q_rows, o.q_columns);
    one(p_.gradient, p_.value_width, o.values, o.g_rows, o.g_columns);
  }

  /// Of k or v.
  PairedRows shared_rows(const Chunk& c, const TensorView& view, int64_t width, int64_t key, int64_t keys,
                         uint16_t* copy) const {
    return paired_rows_of(c.operands[view.buffer], view, c.batch, c.shared, key, keys, width, copy);
  }

  void read_keys(const Chunk& c, int64_t key, int64_t keys) const override {
    const Own o = own(c.tiles.own);
    const PairedRows k = shared_rows(c, p_.k, p_.width, key, keys, o.keys);
    bf16_.pair_rows(k.data, k.row, keys, p_.width, o.key_pairs, lanes_of(p_.width));
  }

  void run_pair(const Chunk& c, const Pair& pair) const override {
    const Products products(bf16_);
    const Tiles& t = c.tiles;
    const Own o = own(t.own);
    const int64_t keys = pair.tile.keys, columns = pair.tile.columns, skip = pair.tile.skip;
    const int64_t start = pair.query + skip, queries = pairs_of(pair.queries - skip);
    const int64_t width = pairs_of(p_.width), values = pairs_of(p_.value_width);
    const int64_t dk_row = lanes_of(p_.width), dv_row = lanes_of(p_.value_width);
    const PairedRows k = shared_rows(c, p_.k, p_.width, pair.key, keys, o.keys),
                     v = shared_rows(c, p_.v, p_.value_width, pair.key, keys, o.values);
    bf16_.multiply(k.data, k.row, 2, o.q_columns + pair.query * width + skip, block, t.scores, block, keys,
                   columns, width, p_.scale, false);
    mask_scores(math_, p_, c.operands, c.batch, pair.head, pair.key, pair.tile, pair.query, pair.queries,
                t.scores, t.bias);
    bf16_.multiply(v.data, v.row, 2, o.g_columns + pair.query * values + skip, block, t.arrived, block, keys,
                   columns, values, 1, false);
    bf16_.score_gradient(t.scores, t.arrived, keys, columns, t.log_sum + start, t.inner + start, o.weights,
                         o.gradients, o.gradient_pairs);
    bf16_.multiply(o.weights, block, 2, o.g_rows + start / 2 * dv_row, dv_row,
                   t.dv + (pair.key - c.first) * dv_row, dv_row, keys, dv_row, queries, 1, true);
    bf16_.multiply(o.gradients, block, 2, o.q_rows + start / 2 * dk_row, dk_row,
                   t.dk + (pair.key - c.first) * dk_row, dk_row, keys, dk_row, queries, 1, true);
    bf16_.multiply(elements(o.key_pairs + pair.at / 2 * dk_row), 2, 2 * dk_row, o.gradient_pairs, block,
                   t.dq + pair.query * p_.width + skip, block, p_.width, columns, pairs_of(keys), 1, true);
  }

 private:
  const AttentionBf16Math& bf16_;
};

}  // namespace

std::unique_ptr<Kernel> make_attention_forward_bf16(const AttentionProblem& problem,
                                                    const AttentionBf16Math& math) {
  return std::make_unique<AttentionForwardBf16>(problem, math);
}

std::unique_ptr<Kernel> make_attention_backward_bf16(const AttentionProblem& problem,
                                                     const AttentionBf16Math& math) {
  return std::make_unique<AttentionBackwardBf16>(problem, math);
}

}  // namespace millrace::cpu
