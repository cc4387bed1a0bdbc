#include "backend/cpu/onednn/matmul.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>

#include "backend/cpu/kernels/geometry.h"
#include "backend/cpu/kernels/vectors.h"
#include "backend/cpu/onednn/staged_kernel.h"
#include "base/format.h"

namespace millrace::onednn {
namespace {

using cpu::MatrixProduct;

/// Rows and columns with strides, behind them several matrices when there are.
dnnl::memory::desc matrices(dnnl::memory::data_type type, int64_t batch, int64_t rows, int64_t columns,
                            int64_t batch_stride, int64_t row_stride, int64_t column_stride) {
  if (batch == 1) return {{rows, columns}, type, {row_stride, column_stride}};
  return {{batch, rows, columns}, type, {batch_stride, row_stride, column_stride}};
}

/// Sizes of a chunk: so many matrices, or a rectangle of one result.
struct ChunkSize {
  int64_t batch, m, n;
};

// A chunk is worth some 20 µs, and there are 8, or 16 of a large product. A result is split to near squares,
// but not below what was measured to keep the speed: 192 columns, 32 rows, or 256 rows where every chunk of
// rows must transpose the right side again.
ChunkSize chunk_size(const MatrixProduct& p, bool constant) {
  const double work = 2.0 * static_cast<double>(p.batch * p.k * p.n * std::max<int64_t>(p.m, 4));
  const auto wanted = static_cast<int64_t>(std::clamp(work / 2e6, 1.0, work > 1e9 ? 16.0 : 8.0));
  if (p.batch >= wanted) return {(p.batch + wanted - 1) / wanted, p.m, p.n};
  const int64_t least_m = p.transpose_b && !constant ? 256 : 32, least_n = 192;
  ChunkSize size{1, p.m, p.n};
  for (int64_t count = p.batch; count < wanted; count *= 2) {
    const bool by_m = size.m >= 2 * least_m, by_n = size.n >= 2 * least_n;
    if (by_n && (size.n >= size.m || !by_m))
      size.n = (size.n / 2 + 63) / 64 * 64;
    else if (by_m)
      size.m = (size.m / 2 + 15) / 16 * 16;
  }
  return size;
}

// Half of what a core can do, and what a call costs.
double nanoseconds(const MatrixProduct& p, int64_t chunks) {
  return static_cast<double>(2 * p.batch * p.m * p.k * p.n) / 60 + 1500.0 * static_cast<double>(chunks);
}

// Of no more rows, products are 1×1 convolutions.
constexpr int64_t kFewRows = 16;

/// A product of few rows with a constant right side, as a 1×1 convolution of m positions; nullptr where
/// oneDNN has none that is made for it. It is as fast as a product in f32, whose code takes 30 ms to be made
/// in every process; with more rows it is slower. The right side is packed in panels of columns, whatever the
/// chunks are: one form for all of them.
std::unique_ptr<Kernel> build_of_few_rows(const MatrixProduct& p, const Array& right) {
  using dnnl::memory;
  const int64_t block = cpu::has_avx512() ? 16 : 8;
  const auto format = block == 16 ? memory::format_tag::OIhw16i16o : memory::format_tag::OIhw8i8o;
  const ChunkSize chunk = chunk_size(p, true);
  if (chunk.n < p.n && chunk.n % block != 0) return nullptr;
  const auto type = memory::data_type::f32;
  const auto of_columns = [&](int64_t n) { return memory::desc({n, p.k, 1, 1}, type, format); };
  const memory::desc plain({p.n, p.k, 1, 1}, type,
                           {p.transpose_b ? p.k : 1, p.transpose_b ? 1 : p.n, p.n * p.k, p.n * p.k});
  auto kernel = std::make_unique<StagedKernel>();
  std::map<std::pair<int64_t, int64_t>, dnnl::convolution_forward::primitive_desc> made;
  std::map<std::pair<int64_t, int64_t>, dnnl::convolution_forward> products;
  kernel->stage();
  const Place weights = kernel->pack(plain, 0, of_columns(p.n), &right);
  const int64_t column_bytes = (p.k + block - 1) / block * block * p.dtype.bytes();
  std::string implementation;
  int64_t chunks = 0;
  for (int64_t m0 = 0; m0 < p.m; m0 += chunk.m)
    for (int64_t n0 = 0; n0 < p.n; n0 += chunk.n, ++chunks) {
      const int64_t m = std::min(chunk.m, p.m - m0), n = std::min(chunk.n, p.n - n0);
      const memory::desc x({1, p.k, 1, m}, type, memory::format_tag::nhwc),
          y({1, n, 1, m}, type, memory::format_tag::nhwc);
      auto [at, fresh] = made.try_emplace({m, n});
      if (fresh)
        at->second = dnnl::convolution_forward::primitive_desc(
            engine(), dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, x,
            of_columns(n), y, {1, 1}, {0, 0}, {0, 0}, attributes(), true);
      if (!at->second) return nullptr;
      implementation = at->second.impl_info_str();
      if (!implementation.starts_with("jit_1x1:avx")) return nullptr;
      kernel->chunk();
      const Place to = Place{Buffer::result} + (m0 * p.n + n0) * p.dtype.bytes();
      const bool whole = n == p.n;
      const Place sums = whole ? to : kernel->reserve_in_chunk(m * n * p.dtype.bytes());
      kernel->call(products.try_emplace({m, n}, at->second).first->second, at->second,
                   {{DNNL_ARG_SRC, x, Place{Buffer::operand0} + m0 * p.k * p.dtype.bytes()},
                    {DNNL_ARG_WEIGHTS, of_columns(n), weights + n0 * column_bytes},
                    {DNNL_ARG_DST, y, sums}});
      if (!whole) kernel->end_chunk({sums, to, m, n, n0, n * p.dtype.bytes(), p.n * p.dtype.bytes()});
    }
  kernel->estimate(nanoseconds(p, chunks));
  kernel->describe(fmt::format("{} packed, {} chunk{} of {}×{}×{}", implementation, chunks,
                               chunks == 1 ? "" : "s", chunk.m, p.k, chunk.n));
  return kernel;
}

/// oneDNN makes the code of its products in f32 when the first one runs. That takes 30 ms: a thread of its
/// own does so while other things are prepared. With the last copy of what is returned goes one who waits for
/// it: when the process ends, oneDNN's memory may go before that thread does.
std::shared_ptr<const void> make_code_of_products() {
  static std::atomic<bool> made = false;
  static const std::jthread maker([] {
    using dnnl::memory;
    constexpr int64_t size = 32, stride = 2 * size;  // dense rows may have another implementation
    const OneThread one_thread;
    try {
      std::vector<float> zeros(3 * size * stride);
      const memory::desc square({size, size}, memory::data_type::f32, {stride, 1});
      const auto at = [&](size_t i) { return memory(square, engine(), zeros.data() + i * size * stride); };
      dnnl::stream stream(engine());
      dnnl::matmul(dnnl::matmul::primitive_desc(engine(), square, square, square))
          .execute(stream, {{DNNL_ARG_SRC, at(0)}, {DNNL_ARG_WEIGHTS, at(1)}, {DNNL_ARG_DST, at(2)}});
      stream.wait();
    } catch (const std::exception&) {  // (the first product says what is wrong)
    }
    made = true;
    made.notify_all();
  });
  return {&made, [](const void*) { made.wait(false); }};
}

/// Numbers from one row of a constant right side to the next, for products that read rows. Rows that are
/// multiples of 4 KB apart meet in the same places of the cache.
int64_t row_stride(int64_t columns) { return columns % 1024 == 0 ? columns + 16 : columns; }

/// A constant right side by such rows: where it lies, if that is how.
Place pack_rows(StagedKernel& kernel, const MatrixProduct& p, const Array& right) {
  using dnnl::memory;
  const memory::data_type type = data_type(p.dtype);
  const memory::desc own({p.k, p.n}, type, {p.transpose_b ? 1 : p.n, p.transpose_b ? p.k : 1}),
      rows({p.k, p.n}, type, {row_stride(p.n), 1});
  return kernel.pack(own, 0, rows, &right);
}

}  // namespace

void prepare_for(const std::map<std::string, std::string>& choices) {
  for (const auto& [problem, choice] : choices) {
    constexpr std::string_view product = "matmul f32[";
    if (choice != "onednn" || !problem.starts_with(product)) continue;
    int64_t rows = 0;
    std::from_chars(problem.data() + product.size(), problem.data() + problem.size(), rows);
    if (rows <= kFewRows) continue;
    // (What a thread has goes before what the process has.)
    thread_local const std::shared_ptr<const void> until_made = make_code_of_products();
    return;
  }
}

std::unique_ptr<Kernel> build_matmul(const KernelRequest& request) {
  using dnnl::memory;
  const MatrixProduct p = cpu::matrix_product_of(request.graph, request.node);
  const memory::data_type type = data_type(p.dtype);
  const int64_t bytes = p.dtype.bytes();
  const Array* constant = request.graph.constant_value(request.node.operands[1]);
  if (constant && p.dtype == f32 && p.batch == 1 && p.m <= kFewRows && !p.transpose_a)
    if (std::unique_ptr<Kernel> few = build_of_few_rows(p, *constant)) return few;
  const bool steady = !constant && request.is_steady(1), packs = constant || steady;
  const ChunkSize chunk = chunk_size(p, packs);

  auto kernel = std::make_unique<StagedKernel>();
  std::map<std::array<int64_t, 3>, dnnl::matmul::primitive_desc> made;
  std::map<std::array<int64_t, 3>, dnnl::matmul> products;
  // Chunks of the same matrix and columns share packed weights when they want the same format.
  std::vector<std::tuple<memory::desc, int64_t, int64_t, Place>> packed;
  const auto place_of = [&](const memory::desc& desc, int64_t b0, int64_t n0, const auto& pack) {
    for (const auto& [format, matrix, column, place] : packed)
      if (matrix == b0 && column == n0 && format == desc) return place;
    packed.emplace_back(desc, b0, n0, pack());
    return std::get<Place>(packed.back());
  };
  std::optional<Place> rows;  // a constant right side where it is read by rows, in one form for all chunks
  std::string implementation;
  int64_t chunks = 0;
  if (steady) {
    kernel->stage();
    kernel->end_preparation();
  }
  kernel->stage();
  for (int64_t b0 = 0; b0 < p.batch; b0 += chunk.batch)
    for (int64_t m0 = 0; m0 < p.m; m0 += chunk.m)
      for (int64_t n0 = 0; n0 < p.n; n0 += chunk.n, ++chunks) {
        const int64_t batch = std::min(chunk.batch, p.batch - b0), m = std::min(chunk.m, p.m - m0),
                      n = std::min(chunk.n, p.n - n0);
        const memory::desc a = matrices(type, batch, m, p.k, p.m * p.k, p.transpose_a ? 1 : p.k,
                                        p.transpose_a ? p.m : 1),
                           b = matrices(type, batch, p.k, n, p.k * p.n, p.transpose_b ? 1 : p.n,
                                        p.transpose_b ? p.k : 1),
                           y = matrices(type, batch, m, n, p.m * p.n, p.n, 1);
        auto [at, fresh] = made.try_emplace({batch, m, n});
        if (fresh) {
          const memory::desc any(b.get_dims(), type, memory::format_tag::any);
          const auto description = [&](const memory::desc& right) {
            return dnnl::matmul::primitive_desc(engine(), a, right, y, attributes());
          };
          at->second = description(packs ? any : b);
          const bool by_rows = std::string_view(at->second.impl_info_str()).starts_with("gemm:");
          if (by_rows && p.dtype == f32) kernel->keep(make_code_of_products());
          if (by_rows && constant && p.batch == 1) {
            at->second = description({b.get_dims(), type, {row_stride(p.n), 1}});
            if (!rows) rows = pack_rows(*kernel, p, *constant);
          }
        }
        const dnnl::matmul::primitive_desc& desc = at->second;
        implementation = desc.impl_info_str();
        const int64_t offset_a = b0 * p.m * p.k + m0 * (p.transpose_a ? 1 : p.k),
                      offset_b = b0 * p.k * p.n + n0 * (p.transpose_b ? p.k : 1),
                      offset_y = b0 * p.m * p.n + m0 * p.n + n0;
        const Place weights = rows ? *rows + n0 * bytes : place_of(desc.weights_desc(), b0, n0, [&] {
          return kernel->pack(b, offset_b * bytes, desc.weights_desc(), constant, steady);
        });
        kernel->chunk();
        kernel->call(products.try_emplace({batch, m, n}, desc).first->second, desc,
                     {{DNNL_ARG_SRC, a, {Buffer::operand0, offset_a * bytes}},
                      {DNNL_ARG_WEIGHTS, desc.weights_desc(), weights},
                      {DNNL_ARG_DST, y, {Buffer::result, offset_y * bytes}}});
      }
  kernel->estimate(nanoseconds(p, chunks));
  kernel->describe(fmt::format("{}{}, {} chunk{} of {}×{}×{}×{}", implementation, packs ? " packed" : "",
                               chunks, chunks == 1 ? "" : "s", chunk.batch, chunk.m, p.k, chunk.n));
  return kernel;
}

}  // namespace millrace::onednn
