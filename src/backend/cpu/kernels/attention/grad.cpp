// Attention backward: chunks, and the kernel in f32.
#include <algorithm>
#include <limits>

#include "backend/cpu/kernels/attention/kernels.h"
#include "base/format.h"
#include "target/slot.h"

namespace millrace::cpu {
namespace {

constexpr int64_t block = attention_block;

class AttentionBackwardF32 : public AttentionBackward {
 public:
  using AttentionBackward::AttentionBackward;
  std::unique_ptr<Kernel> another() const override { return std::make_unique<AttentionBackwardF32>(*this); }

 protected:
  struct Own {
    float *q_rows, *q_columns, *g_rows, *g_columns;
    float *keys, *values;  // only where k and v are not f32
    int64_t bytes;
  };

  const char* arithmetic() const override { return math_.name; }
  int64_t own_bytes() const override { return own(nullptr).bytes; }

  Own own(void* base) const {
    Scratch s(base);
    const int64_t queries = packed_queries();
    const bool narrow = p_.dtype != f32;
    return {s.floats(queries * lanes_of(p_.width)),
            s.floats(queries * p_.width),
            s.floats(queries * lanes_of(p_.value_width)),
            s.floats(queries * p_.value_width),
            s.floats(narrow ? block * p_.width : 0),
            s.floats(narrow ? block * p_.value_width : 0),
            s.used()};
  }

  /// Copies q and the gradient as rows and transposed.
  void read_head(const Chunk& c, int64_t head) const override {
    const Own o = own(c.tiles.own);
    const auto one = [&](const TensorView& view, int64_t width, float* rows, float* columns) {
      const int64_t lanes = lanes_of(width);
      for (int64_t query = 0; query < p_.queries; query += block) {
        const int64_t count = std::min(block, p_.queries - query);
        const Rows from = rows_of(c.operands[view.buffer], view, p_.dtype, c.batch, head, query, count, width,
                                  c.tiles.rows);
        transposed(math_, from, count, width, columns + query * width);
        for (int64_t r = 0; r < count; ++r) {
          float* const to = rows + (query + r) * lanes;
          const float* const at = from.data + r * from.row;
          if (from.column == 1)
            std::copy_n(at, width, to);
          else
            for (int64_t j = 0; j < width; ++j) to[j] = at[j * from.column];
          std::fill(to + width, to + lanes, 0.0f);
        }
      }
    };
    one(p_.q, p_.width, o.q_rows, o.q_columns);
    one(p_.gradient, p_.value_width, o.g_rows, o.g_columns);
  }

  void read_keys(const Chunk& c, int64_t key, int64_t keys) const override {
    const Own o = own(c.tiles.own);
    if (p_.dtype == f32) return;
    rows_of(c.operands[p_.k.buffer], p_.k, p_.dtype, c.batch, c.shared, key, keys, p_.width, o.keys);
    rows_of(c.operands[p_.v.buffer], p_.v, p_.dtype, c.batch, c.shared, key, keys, p_.value_width, o.values);
  }

  void run_pair(const Chunk& c, const Pair& pair) const override {
    const Tiles& t = c.tiles;
    const Own o = own(t.own);
    const auto rows = [&](const TensorView& view, int64_t width, const float* copy) {
      if (p_.dtype != f32) return Rows{copy + pair.at * width, width, 1};
      return rows_of(c.operands[view.buffer], view, f32, c.batch, c.shared, pair.key, pair.tile.keys, width,
                     nullptr);
    };
    const Rows k = rows(p_.k, p_.width, o.keys), v = rows(p_.v, p_.value_width, o.values);
    const int64_t keys = pair.tile.keys, columns = pair.tile.columns, skip = pair.tile.skip;
    const int64_t start = pair.query + skip, left = pair.queries - skip;
    const int64_t dk_row = lanes_of(p_.width), dv_row = lanes_of(p_.value_width);
    math_.multiply(k.data, k.row, k.column, o.q_columns + pair.query * p_.width + skip, block, t.scores,
                   block, keys, columns, p_.width, p_.scale, false);
    mask_scores(math_, p_, c.operands, c.batch, pair.head, pair.key, pair.tile, pair.query, pair.queries,
                t.scores, t.bias);
    math_.multiply(v.data, v.row, v.column, o.g_columns + pair.query * p_.value_width + skip, block,
                   t.arrived, block, keys, columns, p_.value_width, 1, false);
    math_.score_gradient(t.scores, t.arrived, keys, columns, t.log_sum + start, t.inner + start);
    math_.multiply(t.scores, block, 1, o.g_rows + start * dv_row, dv_row,
                   t.dv + (pair.key - c.first) * dv_row, dv_row, keys, dv_row, left, 1, true);
    math_.multiply(t.arrived, block, 1, o.q_rows + start * dk_row, dk_row,
                   t.dk + (pair.key - c.first) * dk_row, dk_row, keys, dk_row, left, 1, true);
    math_.multiply(k.data, k.column, k.row, t.arrived, block, t.dq + pair.query * p_.width + skip, block,
                   p_.width, columns, keys, 1, true);
  }
};

}  // namespace

AttentionBackward::AttentionBackward(const AttentionProblem& problem, const AttentionMath& math)
    : p_(problem), math_(math) {
  const int64_t key_blocks = (p_.keys + block - 1) / block, pairs = p_.batch * p_.shared;
  // Enough chunks for some threads, of a bounded number: every part has a dq of its own.
  parts_ = std::clamp<int64_t>((16 + pairs - 1) / pairs, 1, std::min<int64_t>(8, key_blocks));
  part_blocks_ = (key_blocks + parts_ - 1) / parts_;
  parts_ = (key_blocks + part_blocks_ - 1) / part_blocks_;
  query_blocks_ = (p_.queries + block - 1) / block;
  slots_ = Slots(pairs * parts_);
}

void AttentionBackward::run(void* const* operands, void* const* results, void* scratch,
                            DeviceContext device) {
  auto* const partial = static_cast<float*>(scratch);
  char* const slots = static_cast<char*>(scratch) + partial_bytes();
  const int64_t slot_bytes = take(nullptr).bytes;
  device.threads().parallel(p_.batch * p_.shared * parts_, [&](int64_t chunk) {
    const Slot slot(slots_);
    const int64_t part = chunk % parts_, pair = chunk / parts_, first = part * part_blocks_ * block;
    run_part({operands, results, partial, pair / p_.shared, pair % p_.shared, part, first,
              std::min(p_.keys, first + part_blocks_ * block), take(slots + slot.index() * slot_bytes)});
  });
  if (parts_ > 1) add_parts(partial, results, device);
}

std::string AttentionBackward::description() const {
  return fmt::format("tiles of {} queries × {} keys, {}, {} chunks{}", block, block, arithmetic(),
                     p_.batch * p_.shared * parts_, parts_ > 1 ? fmt::format(", {} parts", parts_) : "");
}

bool AttentionBackward::can_alias(int operand, int result) const {
  if (!p_.in_place || parts_ > 1) return false;
  if (p_.q.buffer == p_.k.buffer) return operand == p_.q.buffer;
  return operand < 3 && operand == result;
}

int64_t AttentionBackward::partial_bytes() const {
  return parts_ > 1 ? (parts_ * p_.batch * p_.heads * p_.queries * p_.width * 4 + 63) / 64 * 64 : 0;
}

AttentionBackward::Tiles AttentionBackward::take(void* base) const {
  Scratch s(base);
  const int64_t queries = packed_queries(), keys = std::min(p_.keys, part_blocks_ * block);
  return {s.floats(queries * p_.width),
          s.floats(keys * lanes_of(p_.width)),
          s.floats(keys * lanes_of(p_.value_width)),
          s.floats(block * block),
          s.floats(block * block),
          s.floats(queries),
          s.floats(queries),
          s.floats(p_.mask ? block * block : 0),
          s.floats(block * std::max(p_.width, p_.value_width)),
          s.take<char>(own_bytes()),
          s.used()};
}

void AttentionBackward::run_part(const Chunk& c) const {
  const int64_t dk_row = lanes_of(p_.width), dv_row = lanes_of(p_.value_width), keys = c.end - c.first;
  std::fill_n(c.tiles.dk, keys * dk_row, 0.0f);
  std::fill_n(c.tiles.dv, keys * dv_row, 0.0f);
  const int64_t group = p_.heads / p_.shared;
  for (int64_t head = c.shared * group; head < (c.shared + 1) * group; ++head) {
    begin_head(c, head);
    for (int64_t key = c.first; key < c.end; key += block)
      run_keys(c, head, key, std::min(block, c.end - key));
    write_dq(c, head);
  }
  write_rows(c.results[p_.dk.buffer], p_.dk, p_.dtype, c.batch, c.shared, c.first, keys, p_.width, c.tiles.dk,
             dk_row, p_.scale);
  write_rows(c.results[p_.dv.buffer], p_.dv, p_.dtype, c.batch, c.shared, c.first, keys, p_.value_width,
             c.tiles.dv, dv_row, 1);
}

void AttentionBackward::begin_head(const Chunk& c, int64_t head) const {
  const Tiles& t = c.tiles;
  read_head(c, head);
  const auto* const log_sum = static_cast<const float*>(c.operands[p_.log_sum.buffer]);
  const auto* const inner = static_cast<const float*>(c.operands[p_.inner.buffer]);
  for (int64_t i = 0; i < packed_queries(); ++i) {
    // Lanes beyond the last query have weights of zero.
    t.log_sum[i] =
        i < p_.queries ? log_sum[p_.log_sum.at(c.batch, head, i)] : std::numeric_limits<float>::infinity();
    t.inner[i] = i < p_.queries ? inner[p_.inner.at(c.batch, head, i)] : 0;
  }
  std::fill_n(t.dq, packed_queries() * p_.width, 0.0f);
}

void AttentionBackward::run_keys(const Chunk& c, int64_t head, int64_t key, int64_t keys) const {
  read_keys(c, key, keys);
  for (int64_t query = p_.first_query(key) / block * block; query < p_.queries; query += block) {
    const int64_t queries = std::min(block, p_.queries - query);
    for (int64_t at = 0; at < keys;) {
      const Tile tile = tile_of(math_, p_, key + at, keys - at, query, queries);
      if (tile.columns > 0) run_pair(c, {head, key + at, at, query, queries, tile});
      at += tile.keys;
    }
  }
}

void AttentionBackward::write_dq(const Chunk& c, int64_t head) const {
  for (int64_t query = 0; query < p_.queries; query += block) {
    const int64_t queries = std::min(block, p_.queries - query);
    const float* const from = c.tiles.dq + query * p_.width;
    if (parts_ > 1) {
      float* const to =
          c.partial + (((c.part * p_.batch + c.batch) * p_.heads + head) * p_.queries + query) * p_.width;
      math_.transpose(from, block, p_.width, queries, to, p_.width, p_.scale);
    } else {
      write_columns(math_, c.results[p_.dq.buffer], p_.dq, p_.dtype, c.batch, head, query, queries, p_.width,
                    from, p_.scale, c.tiles.rows);
    }
  }
}

void AttentionBackward::add_parts(float* partial, void* const* results, DeviceContext device) const {
  const int64_t row = p_.width, all = p_.batch * p_.heads * p_.queries * row;
  device.threads().parallel(p_.batch * p_.heads * query_blocks_, [&](int64_t chunk) {
    const int64_t head = chunk / query_blocks_, query = chunk % query_blocks_ * block;
    const int64_t count = std::min(block, p_.queries - query);
    float* const sum = partial + (head * p_.queries + query) * row;
    for (int64_t part = 1; part < parts_; ++part)
      for (int64_t i = 0; i < count * row; ++i) sum[i] += sum[part * all + i];
    write_rows(results[p_.dq.buffer], p_.dq, p_.dtype, head / p_.heads, head % p_.heads, query, count, row,
               sum, row, 1);
  });
}

std::unique_ptr<Kernel> make_attention_backward(const AttentionProblem& problem, const AttentionMath& math) {
  return std::make_unique<AttentionBackwardF32>(problem, math);
}

}  // namespace millrace::cpu
