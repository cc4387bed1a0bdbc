#include <algorithm>
#include <cstring>

#include "backend/cpu/kernels/gemm/packed_product.h"
#include "backend/cpu/kernels/geometry.h"
#include "base/format.h"

namespace millrace::cpu::gemm {
namespace {

// For each part of the sum a chunk packs its rows of the left side (unless they can be read as they lie),
// which stay in the second-level cache. Where many chunks share rows that cannot be read so, these are copied
// once for all, to where they can. Gradients of weights are long sums with a small result: there both sides
// are packed by each chunk, since the right side, packed before, would go through memory twice more.
class Matmul : public PackedProduct {
 public:
  Matmul(const MatrixProduct& p, const Array* constant, bool steady)
      : PackedProduct(product_arithmetic(p.dtype), p.batch, p.m, p.n,
                      (packs_by_panels(p, constant, steady) ? choose_squares : choose_chunks)(
                          p.batch, p.m, p.n, p.k, product_arithmetic(p.dtype))),
        p_(p),
        steady_(steady),
        step_(depth * arithmetic_.unit) {
    for (int64_t k = 0; k < p.k; k += step_)
      part_units_.push_back((std::min(step_, p.k - k) + arithmetic_.unit - 1) / arithmetic_.unit);
    in_place_ = rows_stay() && may_lie(p.k, arithmetic_);
    by_panels_ = packs_by_panels(p, constant, steady);
    shares_left_ = rows_stay() && !in_place_ && chunk_.parts > 2 && 4 * all_rows_units() <= kMostShared;
    if (constant)
      packed_ = {shared_form(*constant, fmt::format("gemm matmul {} {}", p.transpose_b, p.n),
                             {f32, {p.batch * right_units()}}, [&](Array& packed) {
                               auto* const to = static_cast<Unit*>(packed.data());
                               for (int64_t i = 0; i < batch_ * pack_chunks(); ++i)
                                 pack_right(constant->data(), to, i);
                             })};
  }

  std::unique_ptr<Kernel> another() const override { return std::make_unique<Matmul>(*this); }
  int stages() const override { return prepares() ? 2 : 1; }
  int64_t chunks(int stage) const override {
    return prepares() && stage == 0 ? first_pack_chunks() + copy_chunks() : result_chunks();
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
    run_result_chunk(operands, results, scratch, matrix * p_.m + m, std::min(rows_, p_.m - m), part);
  }

  // Rows of the left side, as long as they lie in their own memory.
  int64_t most_rows() const override { return p_.batch == 1 && !p_.transpose_a ? p_.m : 0; }
  bool takes_row(int operand) const override { return operand == 0; }
  int first_stages() const override { return packs_first() ? 1 : 0; }
  /// Rows of the left side are not all there then.
  void prepare_rows(const RowUse& /*use*/) override { shares_left_ = false; }

  int64_t kept_bytes() const override { return steady_ ? 4 * batch_ * right_units() : 0; }
  void prepare(void* const* operands, void* kept, void* /*scratch*/, DeviceContext device) override {
    if (!steady_) return;
    kept_ = static_cast<Unit*>(kept);
    device.threads().parallel(batch_ * pack_chunks(),
                              [&](int64_t chunk) { pack_right(operands[1], kept_, chunk); });
  }
  std::string description() const override {
    return fmt::format("{} chunks of {}×{}×{}{}{}", result_chunks(), rows_, p_.k, chunk_.columns,
                       by_panels_      ? ", packed by panels"
                       : packs_first() ? ""
                                       : ", packed before",
                       shares_left_ ? ", rows copied first" : "");
  }

 private:
  int64_t shared_units() const override { return first_right_units() + shared_left_units(); }
  static bool packs_by_panels(const MatrixProduct& p, const Array* constant, bool steady) {
    return p.transpose_a && !p.transpose_b && !constant && !steady;
  }
  bool packs_first() const { return packed_.empty() && !steady_ && !by_panels_; }
  bool prepares() const { return packs_first() || shares_left_; }
  int64_t first_right_units() const { return packs_first() ? batch_ * right_units() : 0; }
  int64_t first_pack_chunks() const { return packs_first() ? batch_ * pack_chunks() : 0; }
  /// Whether blocks read rows of the left side, which may be others' memory.
  bool rows_stay() const { return !p_.transpose_a && arithmetic_.left_side != LeftSide::columns; }

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

  void pack_right(const void* from, Unit* to, int64_t chunk) const {
    const int64_t matrix = chunk / pack_chunks();
    const char* const b = static_cast<const char*>(from) + matrix * p_.k * p_.n * arithmetic_.bytes;
    each_panel(to + matrix * right_units(), chunk % pack_chunks(),
               [&](int64_t part, int64_t n, int64_t columns, Unit* panel) {
                 const int64_t k0 = part * step_, count = std::min(step_, p_.k - k0);
                 if (p_.transpose_b)
                   return arithmetic_.pack_columns(b + (n * p_.k + k0) * arithmetic_.bytes, p_.k, columns,
                                                   count, panel);
                 const char* rows[2 * depth];
                 for (int64_t k = 0; k < count; ++k) rows[k] = b + (k0 + k) * p_.n * arithmetic_.bytes;
                 arithmetic_.pack_rows(rows, n * arithmetic_.bytes, count, columns, panel, arithmetic_.panel);
               });
  }

  /// Rows [m, m + rows) of the left side, in blocks.
  void pack_left(const char* a, int64_t m, int64_t rows, int64_t k0, int64_t count, Unit* to) const {
    const char* from[2 * depth];
    if (p_.transpose_a) {
      for (int64_t k = 0; k < count; ++k) from[k] = a + (k0 + k) * p_.m * arithmetic_.bytes;
      return pack_left_columns(arithmetic_, from, m * arithmetic_.bytes, count, rows, to);
    }
    const int64_t blocks = arithmetic_.blocks_of(rows);
    for (int64_t i = 0; i < blocks; ++i, to += arithmetic_.left_block) {
      const int64_t r = rows * i / blocks, height = rows * (i + 1) / blocks - r;
      for (int64_t row = 0; row < height; ++row) from[row] = a + (m + r + row) * p_.k * arithmetic_.bytes;
      arithmetic_.pack_left_rows(from, k0 * arithmetic_.bytes, height, count, to);
    }
  }

  void multiply_by_panels(const char* a, const char* b, void* result, Unit* own, int64_t row, int64_t rows,
                          int64_t columns_part) const {
    const int64_t m = row % p_.m, left_row = p_.m * arithmetic_.bytes, right_row = p_.n * arithmetic_.bytes;
    const char* from[2 * depth];  // of a part
    const auto count_of = [&](int64_t part) { return std::min(step_, p_.k - part * step_); };
    add_parts_by_panels(
        result, own, row, rows, columns_part,
        [&](int64_t part, Unit* to) {
          for (int64_t k = 0; k < count_of(part); ++k) from[k] = b + (part * step_ + k) * right_row;
          pack_left(a, m, rows, part * step_, count_of(part), to);
        },
        [&](int64_t part, int64_t n, int64_t columns, Unit* to) {
          arithmetic_.pack_rows(from, n * arithmetic_.bytes, count_of(part), columns, to, arithmetic_.panel);
        },
        [&](int64_t part) {
          return Rows{a + part * step_ * left_row + m * arithmetic_.bytes, left_row};
        },
        [&](int64_t part, int64_t n) {
          return Rows{b + part * step_ * right_row + n * arithmetic_.bytes, right_row};
        });
  }

  void multiply(void* const* operands, void* result, Unit* shared, Unit* own, int64_t row, int64_t rows,
                int64_t columns_part) const override {
    const int64_t matrix = row / p_.m, m = row % p_.m, then = columns_part + slots_.count();
    const char* const a = static_cast<const char*>(operands[0]) + matrix * p_.m * p_.k * arithmetic_.bytes;
    if (by_panels_)
      return multiply_by_panels(
          a, static_cast<const char*>(operands[1]) + matrix * p_.k * p_.n * arithmetic_.bytes, result, own,
          row, rows, columns_part);
    const Unit* const made = steady_ ? kept_ : shared;
    const Unit* const right = (packed_.empty() ? made : fixed_right()) + matrix * right_units();
    const Unit* const likely = then < chunk_.parts ? right + chunk_.first_column(then) * depth : nullptr;
    add_parts(operands, result, right, own, row, columns_part, likely, [&](int64_t part) {
      const int64_t k0 = part * step_;
      Left left{own, arithmetic_.packs_by_rows(!p_.transpose_a), rows};
      if (shares_left_) {
        left.step = copied_row();
        left.blocks = shared + first_right_units() + (matrix * p_.m + m) * left.step + k0 / arithmetic_.unit;
      } else if (in_place_) {
        left.blocks = reinterpret_cast<const Unit*>(a + (m * p_.k + k0) * arithmetic_.bytes);
        left.step = p_.k / arithmetic_.unit;
      } else {
        pack_left(a, m, rows, k0, std::min(step_, p_.k - k0), own);
      }
      return left;
    });
  }

  const MatrixProduct p_;
  const bool steady_;
  const int64_t step_;  // elements of the sum at a time
  bool shares_left_ = false;
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
