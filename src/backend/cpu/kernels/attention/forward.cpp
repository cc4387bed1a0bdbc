// Attention forward: chunks, and the kernel in f32.
#include <algorithm>
#include <cmath>
#include <limits>

#include "backend/cpu/kernels/attention/kernels.h"
#include "base/format.h"
#include "target/slot.h"

namespace millrace::cpu {
namespace {

constexpr int64_t block = attention_block;
// The highest score of a query that sees no key. A mask of finite numbers is no lower.
constexpr float kNone = std::numeric_limits<float>::lowest();

class AttentionForwardF32 : public AttentionForward {
 public:
  using AttentionForward::AttentionForward;
  std::unique_ptr<Kernel> another() const override { return std::make_unique<AttentionForwardF32>(*this); }

 protected:
  struct Own {
    float *q, *keys, *values;  // k and v only where they are not f32
    int64_t bytes;
  };

  const char* arithmetic() const override { return math_.name; }
  int64_t own_bytes() const override { return own(nullptr).bytes; }

  Own own(void* base) const {
    Scratch s(base);
    const bool narrow = p_.dtype != f32;
    return {s.floats(p_.width * block), s.floats(narrow ? block * p_.width : 0),
            s.floats(narrow ? block * p_.value_width : 0), s.used()};
  }

  void read_queries(const Block& b) const override {
    const Rows q = rows_of(b.operands[p_.q.buffer], p_.q, p_.dtype, b.batch, b.head, b.query, b.queries,
                           p_.width, b.tiles.rows);
    transposed(math_, q, b.queries, p_.width, own(b.tiles.own).q);
  }

  void run_tile(const Block& b, const Tile& tile, int64_t key) const override {
    const Tiles& t = b.tiles;
    const Own o = own(t.own);
    const Rows k =
        rows_of(b.operands[p_.k.buffer], p_.k, p_.dtype, b.batch, b.shared, key, tile.keys, p_.width, o.keys);
    const Rows v = rows_of(b.operands[p_.v.buffer], p_.v, p_.dtype, b.batch, b.shared, key, tile.keys,
                           p_.value_width, o.values);
    const int64_t skip = tile.skip, columns = tile.columns;
    float *const scores = t.scores + skip, *const mixed = t.mixed + skip;
    math_.multiply(k.data, k.row, k.column, o.q + skip, block, scores, block, tile.keys, columns, p_.width,
                   p_.scale, false);
    mask_scores(math_, p_, b.operands, b.batch, b.head, key, tile, b.query, b.queries, scores, t.bias);
    if (math_.softmax(scores, tile.keys, columns, t.highest + skip, t.sum + skip, t.factor + skip))
      math_.scale(mixed, p_.value_width, columns, t.factor + skip);
    math_.multiply(v.data, v.column, v.row, scores, block, mixed, block, p_.value_width, columns, tile.keys,
                   1, true);
  }
};

}  // namespace

AttentionForward::AttentionForward(const AttentionProblem& problem, const AttentionMath& math)
    : p_(problem), math_(math) {
  const int64_t blocks = (p_.queries + block - 1) / block;
  // A chunk is worth some 50 µs at least.
  const double work = 2e-5 * static_cast<double>(block * p_.keys * (p_.width + p_.value_width));
  per_chunk_ =
      std::clamp<int64_t>(static_cast<int64_t>(50 / std::max(work, 1.0)), 1, std::max<int64_t>(blocks, 1));
  chunks_ = (blocks + per_chunk_ - 1) / per_chunk_;
  const int64_t all = p_.batch * p_.heads * chunks_;
  slots_ = Slots(all);
}

void AttentionForward::run(void* const* operands, void* const* results, void* scratch, DeviceContext device) {
  const int64_t slot_bytes = take(nullptr).bytes;
  device.threads().parallel(p_.batch * p_.heads * chunks_, [&](int64_t chunk) {
    const Slot slot(slots_);
    const Tiles tiles = take(static_cast<char*>(scratch) + slot.index() * slot_bytes);
    const int64_t head = chunk / chunks_ % p_.heads, first = chunk % chunks_ * per_chunk_ * block;
    const int64_t end = std::min(p_.queries, first + per_chunk_ * block);
    for (int64_t query = first; query < end; query += block)
      attend({operands, chunk / chunks_ / p_.heads, head, head / (p_.heads / p_.shared), query,
              std::min(block, p_.queries - query), tiles},
             results);
  });
}

std::string AttentionForward::description() const {
  return fmt::format("tiles of {} queries × {} keys, {}, {} chunks", block, block, arithmetic(),
                     p_.batch * p_.heads * chunks_);
}

AttentionForward::Tiles AttentionForward::take(void* base) const {
  Scratch s(base);
  return {s.floats(block * block),
          s.floats(p_.value_width * block),
          s.floats(block),
          s.floats(block),
          s.floats(block),
          s.floats(p_.mask ? block * block : 0),
          s.floats(block * std::max(p_.width, p_.value_width)),
          s.take<char>(own_bytes()),
          s.used()};
}

void AttentionForward::attend(const Block& b, void* const* results) const {
  read_queries(b);
  std::fill_n(b.tiles.mixed, p_.value_width * block, 0.0f);
  std::fill_n(b.tiles.highest, block, kNone);
  std::fill_n(b.tiles.sum, block, 0.0f);
  const int64_t end = p_.keys_seen(b.query + b.queries);
  for (int64_t key = 0, keys = 0; key < end; key += keys) {
    const Tile tile = tile_of(math_, p_, key, std::min(block, end - key), b.query, b.queries);
    keys = tile.keys;
    run_tile(b, tile, key);
  }
  finish(b, results);
}

void AttentionForward::finish(const Block& b, void* const* results) const {
  const Tiles& t = b.tiles;
  const TensorView& view = p_.log_sum;
  auto* const log_sum = static_cast<float*>(results[view.buffer]);
  for (int64_t i = 0; i < b.queries; ++i) {
    // The sum of a query that sees a key is at least 1.
    const float sum = t.sum[i] < 1 ? 1 : t.sum[i];
    t.factor[i] = 1 / sum;
    log_sum[view.at(b.batch, b.head, b.query + i)] = t.sum[i] > 0 ? t.highest[i] + std::log(sum) : 0;
  }
  const int64_t columns = (b.queries + math_.lanes - 1) / math_.lanes * math_.lanes;
  math_.scale(t.mixed, p_.value_width, columns, t.factor);
  write_columns(math_, results[p_.result.buffer], p_.result, p_.dtype, b.batch, b.head, b.query, b.queries,
                p_.value_width, t.mixed, 1, t.rows);
}

std::unique_ptr<Kernel> make_attention_forward(const AttentionProblem& problem, const AttentionMath& math) {
  return std::make_unique<AttentionForwardF32>(problem, math);
}

}  // namespace millrace::cpu
