// What products of matrices and convolutions have in common. Internal to the provider.
#pragma once

#include <algorithm>
#include <vector>

#include "backend/cpu/kernels/epilogue.h"
#include "backend/cpu/kernels/gemm/kernels.h"
#include "target/shared_constants.h"
#include "target/slot.h"

namespace millrace::cpu::gemm {

/// y[batch, m, n] with sums of k, which are made in parts of up to `depth` units. The right side is packed
/// whole, part by part in panels; then every chunk computes a rectangle of a result. It sums in order, so
/// that results depend on nothing but the problem.
class PackedProduct : public ChunkedKernel, public RowKernel, public PackingKernel {
 public:
  // By rows, as long as they are not too few for their cost.
  int64_t row_grain(int64_t rows) const override {
    if (rows <= 0 || most_rows() == 0 || most_rows() % rows != 0) return 0;
    const int64_t each = most_rows() / rows, wanted = std::min(4 * block_rows, rows_);
    return (wanted + each - 1) / each;
  }
  void run_rows(int64_t rows, int64_t begin, int64_t end, void* const* operands, void* const* results,
                void* scratch) override {
    const int64_t each = most_rows() / rows;
    const Slot slot(slots_);
    Unit* const own = own_units(scratch, slot);
    for (int64_t m = begin * each; m < end * each; m += rows_)
      for (int64_t part = 0; part < chunk_.parts; ++part)
        multiply(operands, results[0], static_cast<Unit*>(scratch), own, m, std::min(rows_, end * each - m),
                 part);
  }
  int64_t scratch_bytes() const override { return 4 * shared_units() + slots_bytes(); }
  int64_t slots_bytes() const override { return 4 * slots_.count() * slot_units(); }

 protected:
  PackedProduct(const Arithmetic& arithmetic, int64_t batch, int64_t m, int64_t n, const Rectangle& chunk,
                const Epilogue& epilogue = {})
      : arithmetic_(arithmetic),
        epilogue_(epilogue),
        batch_(batch),
        m_(m),
        n_(n),
        width_(round_up(n, arithmetic.panel)),
        chunk_(chunk),
        rows_(chunk_.rows),
        slots_(result_chunks()) {}

  /// Units of scratch memory that chunks share; behind them are those of slots.
  virtual int64_t shared_units() const = 0;
  /// `rows` ≤ rows_ rows of the result from `row` on, counted over all matrices, and a part of its columns.
  virtual void multiply(void* const* operands, void* result, Unit* shared, Unit* own, int64_t row,
                        int64_t rows, int64_t columns_part) const = 0;

  /// Of the right side of one matrix.
  int64_t right_units() const { return parts() * depth * width_; }
  int64_t parts() const { return static_cast<int64_t>(part_units_.size()); }
  int64_t row_chunks() const { return (m_ + rows_ - 1) / rows_; }
  int64_t result_chunks() const { return batch_ * row_chunks() * chunk_.parts; }
  const Unit* fixed_right() const { return static_cast<const Unit*>(packed_[0].data()); }

  // Packing goes by chunks of some panels in one part of the sum.
  static constexpr int64_t panels_a_chunk = 4;
  int64_t panel_groups() const { return (width_ / arithmetic_.panel + panels_a_chunk - 1) / panels_a_chunk; }
  int64_t pack_chunks() const { return parts() * panel_groups(); }
  /// Calls pack(part, first column, columns, panel) for the panels of one of the chunks of a matrix.
  template <typename Pack>
  void each_panel(Unit* to, int64_t chunk, Pack&& pack) const {
    const int64_t part = chunk / panel_groups(), panel = arithmetic_.panel,
                  begin = chunk % panel_groups() * panels_a_chunk * panel,
                  end = std::min(begin + panels_a_chunk * panel, n_);
    for (int64_t n = begin; n < end; n += panel)
      pack(part, n, std::min(panel, n_ - n), to + part * depth * width_ + n * depth);
  }

  void run_result_chunk(void* const* operands, void* const* results, void* scratch, int64_t row, int64_t rows,
                        int64_t columns_part) {
    const Slot slot(slots_);
    multiply(operands, results[0], static_cast<Unit*>(scratch), own_units(scratch, slot), row, rows,
             columns_part);
  }

  /// Adds the parts, of whose left sides left_of(part) says where they are, and finishes the sums. `right`:
  /// of the matrix; `likely`: the panel that is probably wanted next, or null.
  template <typename LeftOf>
  void add_parts(void* const* operands, void* result, const Unit* right, Unit* own, int64_t row,
                 int64_t columns_part, const Unit* likely, LeftOf&& left_of) const {
    const int64_t n = chunk_.first_column(columns_part),
                  columns = std::min(chunk_.first_column(columns_part + 1), n_) - n,
                  offset = (row * n_ + n) * arithmetic_.bytes;
    const Epilogue::At at = epilogue_.at(operands, n, offset);
    const Finish finish{static_cast<char*>(result) + offset,
                        n_ * arithmetic_.bytes,
                        at.bias,
                        at.added,
                        epilogue_.low,
                        epilogue_.high};
    auto* const sums = reinterpret_cast<float*>(own + left_units());
    for (int64_t part = 0; part < parts(); ++part) {
      const bool last = part + 1 == parts();
      const Left left = left_of(part);
      const Unit* const panels = right + part * depth * width_ + n * depth;
      multiply_blocks(arithmetic_, left, panels, part_units_[static_cast<size_t>(part)],
                      {sums, sum_row(), part > 0}, columns,
                      {.packed = last ? likely : panels + depth * width_}, last ? &finish : nullptr);
    }
  }

  /// The same, with the right side packed here, panel by panel: pack_left(part, to) and pack_right(part,
  /// first column, columns, to) pack; soon_left(part) and soon_right(part, first column) say what they will
  /// read.
  template <typename PackLeft, typename PackRight, typename SoonLeft, typename SoonRight>
  void add_parts_by_panels(void* result, Unit* own, int64_t row, int64_t rows, int64_t columns_part,
                           PackLeft&& pack_left, PackRight&& pack_right, SoonLeft&& soon_left,
                           SoonRight&& soon_right) const {
    const int64_t begin = chunk_.first_column(columns_part), panel = arithmetic_.panel,
                  end = std::min(chunk_.first_column(columns_part + 1), n_);
    Unit* const packed = own + left_units();
    auto* const sums = reinterpret_cast<float*>(packed + panel_units());
    const Left left{own, arithmetic_.packs_by_rows(false), rows};
    const int64_t panels = (end - begin + panel - 1) / panel;
    for (int64_t part = 0; part < parts(); ++part) {
      const bool last = part + 1 == parts();
      pack_left(part, own);
      for (int64_t n = begin; n < end; n += panel) {
        const int64_t columns = std::min(panel, end - n);
        pack_right(part, n, columns, packed);
        const Finish finish{static_cast<char*>(result) + (row * n_ + n) * arithmetic_.bytes,
                            n_ * arithmetic_.bytes};
        After after;
        if (!last) after = fetch_left(arithmetic_, soon_left(part + 1), rows, (n - begin) / panel, panels);
        if (n + panel < end)
          after.right = soon_right(part, n + panel);
        else if (!last)
          after.right = soon_right(part + 1, begin);
        multiply_blocks(arithmetic_, left, packed, part_units_[static_cast<size_t>(part)],
                        {sums + n - begin, sum_row(), part > 0}, columns, after, last ? &finish : nullptr);
      }
    }
  }

  const Arithmetic& arithmetic_;
  const Epilogue epilogue_;
  const int64_t batch_, m_, n_, width_;  // width: columns of whole panels
  const Rectangle chunk_;
  const int64_t rows_;      // of a chunk
  bool in_place_ = false;   // the left side is read where it lies
  bool by_panels_ = false;  // each chunk packs the right side's panels for itself
  std::vector<int64_t> part_units_;
  Slots slots_;

 private:
  int64_t left_units() const { return in_place_ ? 0 : arithmetic_.blocks_of(rows_) * arithmetic_.left_block; }
  // The last part of a sum is finished in registers. Rows of the result may lie multiples of 4 KB apart, all
  // in the same cache sets: sums of the others have their own memory.
  int64_t sum_row() const { return chunk_.columns + 16; }
  int64_t panel_units() const { return by_panels_ ? depth * arithmetic_.panel : 0; }
  int64_t slot_units() const {
    return round_up(left_units() + panel_units() + (parts() > 1 ? rows_ * sum_row() : 0), 16);
  }
  Unit* own_units(void* scratch, const Slot& slot) const {
    return static_cast<Unit*>(scratch) + shared_units() + slot.index() * slot_units();
  }
};

}  // namespace millrace::cpu::gemm
