// What attention's kernels in f32 and in bf16 have in common: chunks, and what is f32 in both. Internal to
// them.
#pragma once

#include <string>

#include "backend/cpu/kernels/attention/problem.h"
#include "target/slot.h"

namespace millrace::cpu {

/// A chunk has some blocks of queries of one head; scores stand transposed, keys in rows and queries in
/// lanes, so that k is read where it lies and maxima and sums need no work across lanes.
class AttentionForward : public Kernel {
 public:
  AttentionForward(const AttentionProblem& problem, const AttentionMath& math);
  void run(void* const* operands, void* const* results, void* scratch, DeviceContext device) override;
  int64_t slots_bytes() const override { return slots_.count() * take(nullptr).bytes; }
  std::string description() const override;

 protected:
  struct Tiles {
    float *scores, *mixed, *highest, *sum, *factor, *bias, *rows;
    void* own;  // as much as own_bytes() says
    int64_t bytes;
  };
  /// A block of queries of one head, and the memory for it.
  struct Block {
    void* const* operands;
    int64_t batch, head, shared, query, queries;
    Tiles tiles;
  };

  virtual const char* arithmetic() const = 0;
  virtual int64_t own_bytes() const = 0;
  virtual void read_queries(const Block& b) const = 0;
  /// Adds what the tile's keys, from `key` on, give to the sums and to `mixed`.
  virtual void run_tile(const Block& b, const Tile& tile, int64_t key) const = 0;

  const AttentionProblem p_;
  const AttentionMath& math_;

 private:
  Tiles take(void* base) const;
  void attend(const Block& b, void* const* results) const;
  void finish(const Block& b, void* const* results) const;

  int64_t per_chunk_, chunks_;  // blocks of queries; chunks of a head
  Slots slots_;
};

/// A chunk has a head of k and v, all heads of q that share it, and one part of its keys. Over blocks of keys
/// and of queries it computes the weights again from the log-sum-exp, and adds up dk and dv for its keys and
/// dq for all queries. With one part that is dq; else the parts of dq are added in order by a second stage.
class AttentionBackward : public Kernel {
 public:
  AttentionBackward(const AttentionProblem& problem, const AttentionMath& math);
  void run(void* const* operands, void* const* results, void* scratch, DeviceContext device) override;
  int64_t scratch_bytes() const override { return partial_bytes() + slots_bytes(); }
  int64_t slots_bytes() const override { return slots_.count() * take(nullptr).bytes; }
  std::string description() const override;
  /// A chunk reads all it needs of its slices of q, k and v before it writes the same slices.
  bool can_alias(int operand, int result) const override;

 protected:
  struct Tiles {
    float *dq, *dk, *dv, *scores, *arrived, *log_sum, *inner, *bias, *rows;
    void* own;  // as much as own_bytes() says
    int64_t bytes;
  };
  struct Chunk {
    void* const* operands;
    void* const* results;
    float* partial;
    int64_t batch, shared, part, first, end;  // its keys
    Tiles tiles;
  };
  /// Keys from `key` on, `at` keys behind where the block begins that read_keys read, and the queries that
  /// see them.
  struct Pair {
    int64_t head, key, at, query, queries;
    Tile tile;
  };

  virtual const char* arithmetic() const = 0;
  virtual int64_t own_bytes() const = 0;
  virtual void read_head(const Chunk& c, int64_t head) const = 0;
  virtual void read_keys(const Chunk& c, int64_t key, int64_t keys) const = 0;
  /// Adds what the pair gives to dq, dk and dv, dq and dk before the scale.
  virtual void run_pair(const Chunk& c, const Pair& pair) const = 0;

  int64_t lanes_of(int64_t width) const { return (width + math_.lanes - 1) / math_.lanes * math_.lanes; }
  int64_t packed_queries() const { return query_blocks_ * attention_block; }

  const AttentionProblem p_;
  const AttentionMath& math_;

 private:
  int64_t partial_bytes() const;
  Tiles take(void* base) const;
  void run_part(const Chunk& c) const;
  void begin_head(const Chunk& c, int64_t head) const;
  void run_keys(const Chunk& c, int64_t head, int64_t key, int64_t keys) const;
  void write_dq(const Chunk& c, int64_t head) const;
  void add_parts(float* partial, void* const* results, DeviceContext device) const;

  int64_t parts_, part_blocks_, query_blocks_;
  Slots slots_;
};

}  // namespace millrace::cpu
