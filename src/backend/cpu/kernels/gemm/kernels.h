// The kernels of the provider, and what they share. Internal to it.
#pragma once

#include <optional>
#include <string>

#include "backend/cpu/kernels/gemm/arithmetic.h"
#include "target/provider.h"

namespace millrace::cpu::gemm {

/// For f32 or bf16, what is fastest here: bf16 by tiles where they work.
const Arithmetic& product_arithmetic(DType dtype);
/// What product_arithmetic() gives for the type of this one from now on; nullptr: what it gave before. For
/// tests.
void set_product_arithmetic(const Arithmetic* arithmetic);

/// Why the kernel below does not take the node; nullopt when it does.
std::optional<std::string> why_no_matmul(const Graph& graph, const Node& node);
std::optional<std::string> why_no_weight_gradient(const Graph& graph, const Node& node);

std::optional<std::string> why_no_convolution(const Graph& graph, const Node& node);

std::unique_ptr<Kernel> build_matmul(const KernelRequest& request);
/// conv2d_weight_grad as one product a tap: of the result's gradient, turned round, and the inputs that the
/// tap meets.
std::unique_ptr<Kernel> build_weight_gradient(const KernelRequest& request);

/// conv2d, and conv2d_input_grad of stride 1, as one product whose left side is gathered from the picture.
std::unique_ptr<Kernel> build_convolution(const KernelRequest& request);

/// Part of a result that one chunk computes.
struct Rectangle {
  int64_t rows, columns;         // at most; columns: whole panels
  int64_t panel, panels, parts;  // columns of one; of all columns, cut as equally as panels can be

  int64_t first_column(int64_t part) const { return panels * part / parts * panel; }
};
/// For y[batch, m, n] with sums of k: a chunk is worth up to 20 µs, and there are 16 of a large product, or
/// 32 and so on, so that threads get equal parts. Rectangles are near squares, and small enough for what they
/// touch to stay in the second-level cache.
Rectangle choose_chunks(int64_t batch, int64_t m, int64_t n, int64_t k, const Arithmetic& arithmetic);
/// The same where each chunk packs both sides for itself: no more chunks than the CPUs here want.
Rectangle choose_squares(int64_t batch, int64_t m, int64_t n, int64_t k, const Arithmetic& arithmetic);

/// Whether rows of the left side that are so many elements apart may stay as they lie: they have whole units,
/// and do not all fall into the same few cache sets.
bool may_lie(int64_t elements, const Arithmetic& arithmetic);

/// Rows of the left side in blocks, Arithmetic::left_block units apart; or as they lie in memory, `step`
/// units apart.
struct Left {
  const Unit* blocks;
  bool by_rows;
  int64_t rows;
  int64_t step = 0;
  int64_t segments = 1, segment_step = 0;  // of rows as they lie: see Block
};
/// Where sums are kept.
struct Sums {
  float* c;
  int64_t row;  // floats between rows
  bool add;     // to what is there
};
/// Packs a part of the left side whose columns are rows of memory: `rows` elements of each of `count`, at
/// from[k] + offset bytes.
void pack_left_columns(const Arithmetic& arithmetic, const char* const* from, int64_t offset, int64_t count,
                       int64_t rows, Unit* to);

/// Rows in memory, so many bytes apart.
struct Rows {
  const char* from = nullptr;
  int64_t step = 0;
};
/// What is wanted soon: a packed panel; or rows from which one will be packed, and of the rows of the next
/// left side some lines of the cache, counted down and then to the right, from `first_line` on.
struct After {
  const Unit* packed = nullptr;
  Rows right = {}, left = {};
  int64_t first_line = 0, lines = 0;
};
/// What is fetched beside panel `panel` of so many, where the next part's left side has so many of these
/// rows: by the last ones' blocks that fetch no right side.
After fetch_left(const Arithmetic& arithmetic, const Rows& left, int64_t rows, int64_t panel, int64_t panels);

/// left · right over `units` ≤ depth of the sum, all segments together. right: panels, depth · (columns of
/// one) units apart. Sums stay in memory, or are finished (which writes nothing to it). A panel is fetched
/// while the one before it is multiplied, as weights come from memory; `after`: what is wanted after the
/// last.
void multiply_blocks(const Arithmetic& arithmetic, const Left& left, const Unit* right, int64_t units,
                     const Sums& sums, int64_t columns, const After& after = {},
                     const Finish* finish = nullptr);

}  // namespace millrace::cpu::gemm
