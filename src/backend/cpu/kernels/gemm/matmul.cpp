#include <algorithm>
#include <cstring>

#include "backend/cpu/kernels/gemm/kernels.h"
#include "backend/cpu/kernels/geometry.h"
#include "base/format.h"
#include "target/shared_constants.h"
#include "target/slot.h"

namespace millrace::cpu::gemm {
namespace {

// The right side is packed whole (unless it was before), then every chunk computes a rectangle of a result:
// for each part of the sum it packs its rows of the left side (unless they can be read as they lie), which
// stay in the second-level cache, and multiplies. Where many chunks share rows that cannot be read so, these
// are copied once for all, to where they can. A chunk sums in order, so that results depend on nothing
// but the problem.
class Matmul : public ChunkedKernel, public RowKernel, public PackingKernel {
 public:
  Matmul(const MatrixProduct& p, const Array* constant, bool steady)
      : p_(p), arithmetic_(product_arithmetic(p.dtype)), steady_(steady) {
    step_ = depth * arithmetic_.unit;
    parts_ = (p.k + step_ - 1) / step_;
    width_ = round_up(p.n, arithmetic_.panel);
    chunk_ = choose_chunks(p.batch, p.m, p.n, p.k, arithmetic_);
    rows_ = chunk_.rows;
    shares_left_ = rows_stay() && !in_place() && chunk_.parts > 2 && 4 * all_rows_units() <= kMostShared;
    slots_ = Slots(chunks_of_result());
    if (constant)
      packed_ = {shared_form(
          *constant, fmt::format("gemm matmul {} {}", p.transpose_b, p.n), {f32, {p.batch * right_units()}},
          [&](Array& packed) {
            auto* const to = static_cast<Unit*>(packed.data());
            for (int64_t i = 0; i < pack_chunks(); ++i) pack_right(constant->data(), to, i);
          })};
  }

  std::unique_ptr<Kernel> another() const override { return std::make_unique<Matmul>(*this); }
  int stages() const override { return prepares() ? 2 : 1; }
  int64_t chunks(int stage) const override {
    return prepares() && stage == 0 ? first_pack_chunks() + copy_chunks() : chunks_of_result();
  }
  double nanoseconds() const override { return p_.operations() / arithmetic_.rate; }

  void run_chunk(int stage, int64_t chunk, void* const* operands, void* const* results,
                 void* scratch) override {
    auto* const shared = static_cast<Unit*>(scratch);
    if (prepares() && stage == 0) {
      if (chunk < first_pack_chunks()) return pack_right(operands[1], shared, chunk);
      return copy_left(static_cast<const char*>(operands[0]), shared + first_right_units(),
                       chunk - first_pack_chunks());
    }
    const int64_t m = chunk % row_chunks() * rows_, part = chunk / row_chunks() % chunk_.parts,
                  matrix = chunk / row_chunks() / chunk_.parts;
    with_slot(scratch, [&](const Unit* right, Unit* own) {
      multiply(operands[0], shares_left_ ? shared + first_right_units() : nullptr, right, results[0], own,
               matrix, m, std::min(rows_, p_.m - m), part);
    });
  }

  // By rows of the left side, as long as they are not too few for their cost and lie in their own memory.
  int64_t most_rows() const override { return p_.batch == 1 && !p_.transpose_a ? p_.m : 0; }
  int64_t row_grain(int64_t rows) const override {
    const int64_t wanted = std::min(4 * block_rows, rows_);
    return most_rows() == 0 || p_.m % rows != 0 ? 0 : (wanted + p_.m / rows - 1) / (p_.m / rows);
  }
  bool takes_row(int operand) const override { return operand == 0; }
  int first_stages() const override { return packs_first() ? 1 : 0; }
  /// Rows of the left side are not all there then.
  void prepare_rows(const RowUse& /*use*/) override { shares_left_ = false; }
  void run_rows(int64_t rows, int64_t begin, int64_t end, void* const* operands, void* const* results,
                void* scratch) override {
    const int64_t each = p_.m / rows;
    with_slot(scratch, [&](const Unit* right, Unit* own) {
      for (int64_t m = begin * each; m < end * each; m += rows_)
        for (int64_t part = 0; part < chunk_.parts; ++part)
          multiply(operands[0], nullptr, right, results[0], own, 0, m, std::min(rows_, end * each - m), part);
    });
  }

  int64_t scratch_bytes() const override {
    return 4 * (first_right_units() + shared_left_units()) + slots_bytes();
  }
  int64_t slots_bytes() const override { return 4 * slots_.count() * slot_units(); }
  int64_t kept_bytes() const override { return steady_ ? 4 * p_.batch * right_units() : 0; }
  void prepare(void* const* operands, void* kept, void* /*scratch*/, DeviceContext device) override {
    if (!steady_) return;
    kept_ = static_cast<Unit*>(kept);
    device.threads().parallel(pack_chunks(), [&](int64_t chunk) { pack_right(operands[1], kept_, chunk); });
  }
  std::string description() const override {
    return fmt::format("{} chunks of {}×{}×{}{}{}", chunks_of_result(), rows_, p_.k, chunk_.columns,
                       packs_first() ? "" : ", packed before", shares_left_ ? ", rows copied first" : "");
  }

 private:
  /// Calls `compute` with the packed right side and memory for one chunk.
  template <typename Compute>
  void with_slot(void* scratch, Compute&& compute) {
    auto* const shared = static_cast<Unit*>(scratch);
    const Slot slot(slots_);
    Unit* const own = shared + first_right_units() + shared_left_units() + slot.index() * slot_units();
    const Unit* const made = steady_ ? kept_ : shared;
    compute(packed_.empty() ? made : fixed_right(), own);
  }

  bool packs_first() const { return packed_.empty() && !steady_; }
  bool prepares() const { return packs_first() || shares_left_; }
  int64_t first_right_units() const { return packs_first() ? p_.batch * right_units() : 0; }
  int64_t first_pack_chunks() const { return packs_first() ? pack_chunks() : 0; }
  int64_t right_units() const { return parts_ * depth * width_; }  // of one matrix
  int64_t row_chunks() const { return (p_.m + rows_ - 1) / rows_; }
  int64_t chunks_of_result() const { return p_.batch * row_chunks() * chunk_.parts; }
  /// Whether blocks read rows of the left side, which may be others' memory.
  bool rows_stay() const { return !p_.transpose_a && arithmetic_.left_side != LeftSide::columns; }
  bool in_place() const { return rows_stay() && may_lie(p_.k, arithmetic_); }

  // Rows of the left side, copied to where they fall into different cache sets.
  static constexpr int64_t kMostShared = 8 << 20;  // bytes
  static constexpr int64_t rows_a_copy = 16;
  int64_t copied_row() const { return (p_.k + arithmetic_.unit - 1) / arithmetic_.unit + 16; }
  int64_t all_rows_units() const { return round_up(p_.batch * p_.m * copied_row(), 16); }
  int64_t shared_left_units() const { return shares_left_ ? all_rows_units() : 0; }
  int64_t copy_chunks() const { return shares_left_ ? (p_.batch * p_.m + rows_a_copy - 1) / rows_a_copy : 0; }
  void copy_left(const char* a, Unit* to, int64_t chunk) const {
    const int64_t bytes = p_.k * arithmetic_.bytes;
    const int64_t end = std::min((chunk + 1) * rows_a_copy, p_.batch * p_.m);
    for (int64_t row = chunk * rows_a_copy; row < end; ++row) {
      char* const at = reinterpret_cast<char*>(to + row * copied_row());
      std::memcpy(at, a + row * bytes, static_cast<size_t>(bytes));
      // The missing partner of the last element.
      if (bytes % 4 != 0) std::memset(at + bytes, 0, static_cast<size_t>(4 - bytes % 4));
    }
  }

  int64_t left_units() const {
    return in_place() ? 0 : arithmetic_.blocks_of(rows_) * arithmetic_.left_block;
  }
  // The last part of a sum is finished in registers. Rows of the result may lie multiples of 4 KB apart, all
  // in the same cache sets: sums of the others have their own memory.
  int64_t sum_row() const { return chunk_.columns + 16; }
  int64_t slot_units() const { return round_up(left_units() + (parts_ > 1 ? rows_ * sum_row() : 0), 16); }
  const Unit* fixed_right() const { return static_cast<const Unit*>(packed_[0].data()); }

  // Packing goes by chunks of some panels in one part of the sum.
  static constexpr int64_t panels_a_chunk = 4;
  int64_t panel_groups() const { return (width_ / arithmetic_.panel + panels_a_chunk - 1) / panels_a_chunk; }
  int64_t pack_chunks() const { return p_.batch * parts_ * panel_groups(); }

  void pack_right(const void* from, Unit* to, int64_t chunk) const {
    const int64_t group = chunk % panel_groups(), part = chunk / panel_groups() % parts_,
                  matrix = chunk / panel_groups() / parts_;
    const char* const b = static_cast<const char*>(from) + matrix * p_.k * p_.n * arithmetic_.bytes;
    const int64_t k0 = part * step_, count = std::min(step_, p_.k - k0);
    const int64_t begin = group * panels_a_chunk * arithmetic_.panel,
                  end = std::min(begin + panels_a_chunk * arithmetic_.panel, p_.n);
    for (int64_t n = begin; n < end; n += arithmetic_.panel) {
      Unit* const panel = to + matrix * right_units() + part * depth * width_ + n * depth;
      const int64_t columns = std::min(arithmetic_.panel, p_.n - n);
      if (p_.transpose_b) {
        arithmetic_.pack_columns(b + (n * p_.k + k0) * arithmetic_.bytes, p_.k, columns, count, panel);
      } else {
        const char* rows[2 * depth];
        for (int64_t k = 0; k < count; ++k) rows[k] = b + (k0 + k) * p_.n * arithmetic_.bytes;
        arithmetic_.pack_rows(rows, n * arithmetic_.bytes, count, columns, panel, arithmetic_.panel);
      }
    }
  }

  /// Rows [m, m + rows) of the left side, in blocks.
  void pack_left(const char* a, int64_t m, int64_t rows, int64_t k0, int64_t count, Unit* to) const {
    const char* from[2 * depth];
    if (p_.transpose_a)
      for (int64_t k = 0; k < count; ++k) from[k] = a + (k0 + k) * p_.m * arithmetic_.bytes;
    const int64_t blocks = arithmetic_.blocks_of(rows);
    for (int64_t i = 0; i < blocks; ++i, to += arithmetic_.left_block) {
      const int64_t r = rows * i / blocks, height = rows * (i + 1) / blocks - r;
      if (p_.transpose_a) {
        arithmetic_.pack_left(from, (m + r) * arithmetic_.bytes, count, height, to);
      } else {
        for (int64_t row = 0; row < height; ++row) from[row] = a + (m + r + row) * p_.k * arithmetic_.bytes;
        arithmetic_.pack_left_rows(from, k0 * arithmetic_.bytes, height, count, to);
      }
    }
  }

  /// Up to rows_ rows of a result from m on, and a part of its columns. `copied`: rows of the left side, or
  /// nullptr.
  void multiply(const void* from, const Unit* copied, const Unit* right, void* result, Unit* own,
                int64_t matrix, int64_t m, int64_t rows, int64_t columns_part) const {
    const int64_t n = chunk_.first_column(columns_part),
                  columns = std::min(chunk_.first_column(columns_part + 1), p_.n) - n;
    const char* const a = static_cast<const char*>(from) + matrix * p_.m * p_.k * arithmetic_.bytes;
    char* const y = static_cast<char*>(result) + (matrix * p_.m * p_.n + m * p_.n + n) * arithmetic_.bytes;
    auto* const sums = reinterpret_cast<float*>(own + left_units());
    const Finish finish{.to = y, .step = p_.n * arithmetic_.bytes};
    const int64_t then = columns_part + slots_.count();
    const Unit* const likely =
        then < chunk_.parts ? right + matrix * right_units() + chunk_.first_column(then) * depth : nullptr;
    for (int64_t part = 0; part < parts_; ++part) {
      const bool last = part + 1 == parts_;
      const int64_t k0 = part * step_, count = std::min(step_, p_.k - k0);
      Left left{own, arithmetic_.packs_by_rows(!p_.transpose_a), rows};
      if (copied) {
        left.step = copied_row();
        left.blocks = copied + (matrix * p_.m + m) * left.step + k0 / arithmetic_.unit;
      } else if (in_place()) {
        left.blocks = reinterpret_cast<const Unit*>(a + (m * p_.k + k0) * arithmetic_.bytes);
        left.step = p_.k / arithmetic_.unit;
      } else {
        pack_left(a, m, rows, k0, count, own);
      }
      const Unit* const panels = right + matrix * right_units() + part * depth * width_ + n * depth;
      multiply_blocks(arithmetic_, left, panels, (count + arithmetic_.unit - 1) / arithmetic_.unit,
                      {sums, sum_row(), part > 0}, columns, last ? likely : panels + depth * width_,
                      last ? &finish : nullptr);
    }
  }

  MatrixProduct p_;
  const Arithmetic& arithmetic_;
  bool steady_;
  int64_t step_, parts_, width_;  // elements of the sum at a time, how often; columns of whole panels
  int64_t rows_ = 0;              // of a chunk
  bool shares_left_ = false;
  Rectangle chunk_{};
  Slots slots_;
  Unit* kept_ = nullptr;  // a steady one
};

}  // namespace

std::optional<std::string> why_no_matmul(const Graph& graph, const Node& node) {
  const MatrixProduct p = matrix_product_of(graph, node);
  if (p.m < block_rows || p.n < block_columns) return "too small for blocks of 14×32";
  if (p.operations() < 16e6) return "too little work to pack for";
  return std::nullopt;
}

std::unique_ptr<Kernel> build_matmul(const KernelRequest& request) {
  const Array* constant = request.graph.constant_value(request.node.operands[1]);
  return std::make_unique<Matmul>(matrix_product_of(request.graph, request.node), constant,
                                  !constant && request.is_steady(1));
}

}  // namespace millrace::cpu::gemm
