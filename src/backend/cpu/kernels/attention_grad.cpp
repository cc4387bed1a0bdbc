#include <algorithm>
#include <cstring>

#include "backend/cpu/kernels/attention_problem.h"
#include "backend/cpu/slot.h"
#include "base/format.h"

namespace millrace::cpu {
namespace {

constexpr int64_t block = attention_block;

/// A chunk has a head of k and v, all heads of q that share it, and one part of its keys. Over blocks of keys and of
/// queries it computes the weights again from the log-sum-exp, and adds up dk and dv for its keys and dq for all queries.
/// With one part that is dq; else the parts of dq are added in order by a second stage.
class AttentionBackward : public Kernel {
 public:
  AttentionBackward(const AttentionProblem& problem, const AttentionMath& math) : p_(problem), math_(math) {
    const int64_t key_blocks = (p_.keys + block - 1) / block, pairs = p_.batch * p_.shared;
    // Enough chunks for some threads, of a bounded number: every part has a dq of its own.
    parts_ = std::clamp<int64_t>((16 + pairs - 1) / pairs, 1, std::min<int64_t>(8, key_blocks));
    part_blocks_ = (key_blocks + parts_ - 1) / parts_;
    parts_ = (key_blocks + part_blocks_ - 1) / part_blocks_;
    query_blocks_ = (p_.queries + block - 1) / block;
    slots_ = static_cast<int>(std::min<int64_t>({pairs * parts_, available_cpus(), 64}));
    slot_bytes_ = take(nullptr).bytes;
  }

  void run(void* const* operands, void* const* results, void* scratch, ThreadPool& pool) override {
    auto* const partial = static_cast<float*>(scratch);
    char* const slots = static_cast<char*>(scratch) + partial_bytes();
    pool.parallel(p_.batch * p_.shared * parts_, [&](int64_t chunk) {
      const Slot slot(taken_, slots_);
      const Tiles tiles = take(slots + slot.index() * slot_bytes_);
      const int64_t part = chunk % parts_, pair = chunk / parts_;
      run_part({operands, results, partial, pair / p_.shared, pair % p_.shared, part}, tiles);
    });
    if (parts_ > 1) add_parts(partial, results, pool);
  }

  int64_t scratch_bytes() const override { return partial_bytes() + slots_ * slot_bytes_; }
  std::string description() const override {
    return fmt::format("tiles of {} queries × {} keys, {}, {} chunks{}", block, block, math_.name,
                       p_.batch * p_.shared * parts_, parts_ > 1 ? fmt::format(", {} parts", parts_) : "");
  }
  /// A chunk reads all it needs of its slices of q, k and v before it writes the same slices.
  bool can_alias(int operand, int result) const override {
    if (!p_.in_place || parts_ > 1) return false;
    if (p_.q.buffer == p_.k.buffer) return operand == p_.q.buffer;
    return operand < 3 && operand == result;
  }

 private:
  struct Tiles {
    float *q_rows, *q_columns, *g_rows, *g_columns, *dq, *dk, *dv, *scores, *arrived, *log_sum, *inner, *bias,
        *rows, *keys, *values;
    int64_t bytes;
  };
  struct Chunk {
    void* const* operands;
    void* const* results;
    float* partial;
    int64_t batch, shared, part;
  };

  int64_t lanes_of(int64_t width) const { return (width + math_.lanes - 1) / math_.lanes * math_.lanes; }
  int64_t partial_bytes() const {
    return parts_ > 1 ? (parts_ * p_.batch * p_.heads * p_.queries * p_.width * 4 + 63) / 64 * 64 : 0;
  }

  Tiles take(void* base) const {
    Scratch s(base);
    const int64_t queries = query_blocks_ * block, keys = std::min(p_.keys, part_blocks_ * block);
    const bool narrow = p_.dtype != f32;
    Tiles t{s.floats(queries * lanes_of(p_.width)),
            s.floats(queries * p_.width),
            s.floats(queries * lanes_of(p_.value_width)),
            s.floats(queries * p_.value_width),
            s.floats(queries * p_.width),
            s.floats(keys * lanes_of(p_.width)),
            s.floats(keys * lanes_of(p_.value_width)),
            s.floats(block * block),
            s.floats(block * block),
            s.floats(queries),
            s.floats(queries),
            s.floats(p_.mask ? block * block : 0),
            s.floats(block * std::max(p_.width, p_.value_width)),
            s.floats(narrow ? block * p_.width : 0),
            s.floats(narrow ? block * p_.value_width : 0),
            0};
    t.bytes = s.used();
    return t;
  }

  void run_part(const Chunk& c, const Tiles& t) const {
    const int64_t first = c.part * part_blocks_ * block,
                  end = std::min(p_.keys, first + part_blocks_ * block);
    const int64_t dk_row = lanes_of(p_.width), dv_row = lanes_of(p_.value_width);
    std::fill_n(t.dk, (end - first) * dk_row, 0.0f);
    std::fill_n(t.dv, (end - first) * dv_row, 0.0f);
    const int64_t group = p_.heads / p_.shared;
    for (int64_t h = c.shared * group; h < (c.shared + 1) * group; ++h) {
      pack(c, t, h);
      for (int64_t key = first; key < end; key += block)
        run_keys(c, t, h, first, key, std::min(block, end - key));
      write_dq(c, t, h);
    }
    // q was packed with the scale, so dk has it.
    write_rows(c.results[p_.dk.buffer], p_.dk, p_.dtype, c.batch, c.shared, first, end - first, p_.width,
               t.dk, dk_row, 1);
    write_rows(c.results[p_.dv.buffer], p_.dv, p_.dtype, c.batch, c.shared, first, end - first,
               p_.value_width, t.dv, dv_row, 1);
  }

  /// Copies the head's q (times the scale) and gradient as rows and transposed, and its statistics.
  void pack(const Chunk& c, const Tiles& t, int64_t h) const {
    const auto one = [&](const TensorView& view, int64_t width, float factor, float* rows, float* columns) {
      const int64_t lanes = lanes_of(width);
      for (int64_t i = 0; i < query_blocks_; ++i) {
        const int64_t query = i * block, count = std::min(block, p_.queries - query);
        const Rows from =
            rows_of(c.operands[view.buffer], view, p_.dtype, c.batch, h, query, count, width, t.rows);
        transposed(math_, from, count, width, columns + query * width, factor);
        for (int64_t r = 0; r < count; ++r) {
          float* const to = rows + (query + r) * lanes;
          const float* const at = from.data + r * from.row;
          if (from.column == 1)
            for (int64_t j = 0; j < width; ++j) to[j] = at[j] * factor;
          else
            for (int64_t j = 0; j < width; ++j) to[j] = at[j * from.column] * factor;
          std::fill(to + width, to + lanes, 0.0f);
        }
      }
    };
    one(p_.q, p_.width, p_.scale, t.q_rows, t.q_columns);
    one(p_.gradient, p_.value_width, 1, t.g_rows, t.g_columns);
    const auto* const log_sum = static_cast<const float*>(c.operands[p_.log_sum.buffer]);
    const auto* const inner = static_cast<const float*>(c.operands[p_.inner.buffer]);
    for (int64_t i = 0; i < query_blocks_ * block; ++i) {
      t.log_sum[i] = i < p_.queries ? log_sum[p_.log_sum.at(c.batch, h, i)] : 0;
      t.inner[i] = i < p_.queries ? inner[p_.inner.at(c.batch, h, i)] : 0;
    }
    std::fill_n(t.dq, query_blocks_ * block * p_.width, 0.0f);
  }

  void run_keys(const Chunk& c, const Tiles& t, int64_t h, int64_t first, int64_t key, int64_t keys) const {
    const Rows k =
        rows_of(c.operands[p_.k.buffer], p_.k, p_.dtype, c.batch, c.shared, key, keys, p_.width, t.keys);
    const Rows v = rows_of(c.operands[p_.v.buffer], p_.v, p_.dtype, c.batch, c.shared, key, keys,
                           p_.value_width, t.values);
    for (int64_t query = p_.first_query(key) / block * block; query < p_.queries; query += block) {
      const int64_t queries = std::min(block, p_.queries - query);
      for (int64_t at = 0; at < keys;) {
        const Tile tile = tile_of(math_, p_, key + at, keys - at, query, queries);
        const auto from = [&](const Rows& rows) {
          return Rows{rows.data + at * rows.row, rows.row, rows.column};
        };
        if (tile.columns > 0) run_tile(c, t, h, first, key + at, from(k), from(v), query, queries, tile);
        at += tile.keys;
      }
    }
  }

  void run_tile(const Chunk& c, const Tiles& t, int64_t h, int64_t first, int64_t key, const Rows& k,
                const Rows& v, int64_t query, int64_t queries, const Tile& tile) const {
    const int64_t keys = tile.keys, columns = tile.columns, start = query + tile.skip,
                  left = queries - tile.skip;
    const int64_t dk_row = lanes_of(p_.width), dv_row = lanes_of(p_.value_width);
    float* const dk = t.dk + (key - first) * dk_row;
    float* const dv = t.dv + (key - first) * dv_row;
    const void* const mask = p_.mask ? c.operands[p_.mask->view.buffer] : nullptr;
    math_.multiply(k.data, k.row, k.column, t.q_columns + query * p_.width + tile.skip, block, t.scores,
                   block, keys, columns, p_.width, false);
    mask_scores(math_, p_, mask, c.batch, h, key, keys, start, left, t.scores, t.bias);
    math_.multiply(v.data, v.row, v.column, t.g_columns + query * p_.value_width + tile.skip, block,
                   t.arrived, block, keys, columns, p_.value_width, false);
    math_.score_gradient(t.scores, t.arrived, keys, columns, t.log_sum + start, t.inner + start);
    math_.multiply(t.scores, block, 1, t.g_rows + start * dv_row, dv_row, dv, dv_row, keys, dv_row, left,
                   true);
    math_.multiply(t.arrived, block, 1, t.q_rows + start * dk_row, dk_row, dk, dk_row, keys, dk_row, left,
                   true);
    math_.multiply(k.data, k.column, k.row, t.arrived, block, t.dq + query * p_.width + tile.skip, block,
                   p_.width, columns, keys, true);
  }

  void write_dq(const Chunk& c, const Tiles& t, int64_t h) const {
    for (int64_t query = 0; query < p_.queries; query += block) {
      const int64_t queries = std::min(block, p_.queries - query);
      const float* const from = t.dq + query * p_.width;
      if (parts_ > 1) {
        float* const to =
            c.partial + (((c.part * p_.batch + c.batch) * p_.heads + h) * p_.queries + query) * p_.width;
        math_.transpose(from, block, p_.width, queries, to, p_.width, p_.scale);
      } else if (p_.dtype == f32 && p_.dq.strides[3] == 1) {
        float* const to = static_cast<float*>(c.results[p_.dq.buffer]) + p_.dq.at(c.batch, h, query);
        math_.transpose(from, block, p_.width, queries, to, p_.dq.strides[2], p_.scale);
      } else {
        math_.transpose(from, block, p_.width, queries, t.rows, p_.width, p_.scale);
        write_rows(c.results[p_.dq.buffer], p_.dq, p_.dtype, c.batch, h, query, queries, p_.width, t.rows,
                   p_.width, 1);
      }
    }
  }

  void add_parts(float* partial, void* const* results, ThreadPool& pool) const {
    const int64_t row = p_.width, all = p_.batch * p_.heads * p_.queries * row;
    pool.parallel(p_.batch * p_.heads * query_blocks_, [&](int64_t chunk) {
      const int64_t head = chunk / query_blocks_, query = chunk % query_blocks_ * block;
      const int64_t count = std::min(block, p_.queries - query);
      float* const sum = partial + (head * p_.queries + query) * row;
      for (int64_t part = 1; part < parts_; ++part)
        for (int64_t i = 0; i < count * row; ++i) sum[i] += sum[part * all + i];
      write_rows(results[p_.dq.buffer], p_.dq, p_.dtype, head / p_.heads, head % p_.heads, query, count, row,
                 sum, row, 1);
    });
  }

  const AttentionProblem p_;
  const AttentionMath& math_;
  int64_t parts_, part_blocks_, query_blocks_;
  int slots_;
  int64_t slot_bytes_;
  std::atomic<uint64_t> taken_{0};
};

}  // namespace

std::unique_ptr<Kernel> make_attention_backward(const AttentionProblem& problem, const AttentionMath& math) {
  return std::make_unique<AttentionBackward>(problem, math);
}

}  // namespace millrace::cpu
