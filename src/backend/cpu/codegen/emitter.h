// The emitter of one nest: loops (emit_loops.cpp) and expressions (emit_values.cpp).
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "backend/cpu/codegen/emit_ops.h"
#include "backend/cpu/codegen/nest.h"
#include "llvm/IR/Module.h"

namespace millrace::codegen {

using Values = std::vector<llvm::Value*>;

/// Emits one nest. Expressions are emitted on demand, each in the outermost loop whose variables it needs
/// (`levels_`), so that hoisting needs no pass.
class Emitter {
 public:
  Emitter(const Nest& nest, llvm::Module& module, const std::string& name);
  void run();

 private:
  /// The body of a loop (or of a branch): a block that dominates what is inside, and what was emitted there.
  struct Level {
    llvm::BasicBlock* block;
    std::map<int, llvm::Value*> values, splats, narrow;
    std::map<std::string, llvm::Value*> sums;
  };

  // Loops.
  void outer_loop(llvm::Value* begin, llvm::Value* end);
  void lane_blocks();
  void block();
  void tiled_block();
  Values reduced_loops(size_t k, Values carried);
  Values lane_steps(size_t k, llvm::Value* begin, llvm::Value* end, Values carried);
  Values body(Values carried);
  void finish(Values carried);
  Values loop(llvm::Value* begin, llvm::Value* end, int64_t step, bool guard, Values carried,
              const std::function<Values(llvm::Value*, Values)>& inside);
  Values branch(llvm::Value* condition, Values carried, const std::function<Values(Values)>& inside);
  Values joined(const Values& a, llvm::BasicBlock* from_a, const Values& b, llvm::BasicBlock* from_b);
  Values start_values();
  void merge_next(const Reduce& r, const Values& a, Accumulator b, Values& merged);
  Values merge(const Values& a, const Values& b);
  llvm::Value* reduce_lanes(const Reduce& r, llvm::Value* value, llvm::Value* position,
                            llvm::Value** best_position);

  // Expressions.
  bool varies(int id) const { return nest_.dag[id].depends >> nest_.lane_dim() & 1; }
  int level_of(uint64_t depends) const;
  /// What `make` emits into a level's block, once.
  template <typename Key, typename Make>
  llvm::Value* once(std::map<Key, llvm::Value*> Level::*known, int level, const Key& key, const Make& make) {
    if (const auto at = (levels_[level].*known).find(key); at != (levels_[level].*known).end())
      return at->second;
    Builder::InsertPointGuard guard(b_);
    seek(level);
    return (levels_[level].*known)[key] = make();
  }
  llvm::Value* value(int id);
  llvm::Value* vector(int id);
  llvm::Value* compute(int id);
  llvm::Value* narrow(int id);
  llvm::Value* narrow_or(int id, int64_t otherwise);
  bool can_narrow(int id) const;
  llvm::Value* linear_vector(const Linear& linear, llvm::Type* scalar);
  llvm::Value* uniform_sum(const Linear& linear, bool with_base);
  llvm::Value* masked_row(llvm::Type* wide, llvm::Value* at, llvm::Align align, llvm::Value* mask);
  llvm::Value* load(int id);
  void fetch_ahead(int index, llvm::Value* at, int64_t bytes);
  const Values& tile_of(int id, const Linear& offset);
  llvm::Value* call(const Expr& e);
  llvm::Value* address(int buffer, DType memory, const Linear& offset);
  llvm::Value* lane_addresses(int buffer, DType memory, int offset);
  void store(int buffer, DType memory, int offset, llvm::Value* computed, llvm::Value* extra_offset,
             int stream_align = 0);
  llvm::Value* buffer(int index);
  llvm::Value* splat(llvm::Value* x) { return b_.CreateVectorSplat(nest_.lanes, x); }
  llvm::Value* with_mask(llvm::Value* predicate);
  bool indirect(const Linear& linear) const;

  llvm::Value* i64_(int64_t v) { return b_.getInt64(static_cast<uint64_t>(v)); }
  llvm::Type* vector_type(llvm::Type* scalar) const {
    return llvm::FixedVectorType::get(scalar, nest_.lanes);
  }
  llvm::Value* tail_mask(int64_t active);
  int open_level() const { return static_cast<int>(levels_.size()) - 1; }
  void set_dim(int dim, llvm::Value* value, int level) { dim_value_[dim] = value, dim_level_[dim] = level; }
  void set_lanes(llvm::Value* base, int64_t active, int level);
  llvm::Value* steps(llvm::Type* scalar, int64_t step);
  void seek(int level);

  const Nest& nest_;
  llvm::Module& module_;
  llvm::LLVMContext& context_;
  Builder b_;
  llvm::Function* function_;
  std::vector<Level> levels_;
  std::vector<int> dim_level_;
  Values dim_value_;
  llvm::Value* group_index_ = nullptr;
  llvm::Value* part_index_ = nullptr;
  llvm::Value* mask_ = nullptr;   // active lanes, null: all
  llvm::Value* tail_ = nullptr;   // those of the last vector, where only the call tells
  int tile_step_ = -1;            // which element of a tile is computed, −1 outside of tiles
  std::map<int, Values> tiles_;   // loads of the current tile: a vector for each step
  int64_t active_ = 0;            // how many
  llvm::Value* zeros_ = nullptr;  // a vector's worth of zeros: what loads under a false predicate read
};

}  // namespace millrace::codegen
