#include "backend/cpu/onednn/matmul.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "backend/cpu/onednn/staged_kernel.h"
#include "base/format.h"

namespace millrace::onednn {
namespace {

struct Problem {
  int64_t batch, m, k, n;
  bool transpose_a, transpose_b;
  DType dtype;
};

Problem problem_of(const KernelRequest& request) {
  const Shape &a = request.operand_type(0).shape, &y = request.node.types[0].shape;
  Problem p{};
  p.transpose_a = request.node.attributes.flag("transpose_a");
  p.transpose_b = request.node.attributes.flag("transpose_b");
  const int rank = y.rank();
  p.m = y[rank - 2].size();
  p.n = y[rank - 1].size();
  p.k = a[rank - (p.transpose_a ? 2 : 1)].size();
  p.batch = y.count() / (p.m * p.n);
  p.dtype = request.node.types[0].dtype;
  return p;
}

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
ChunkSize chunk_size(const Problem& p, bool constant) {
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

}  // namespace

std::unique_ptr<Kernel> build_matmul(const KernelRequest& request) {
  using dnnl::memory;
  const Problem p = problem_of(request);
  const memory::data_type type = data_type(p.dtype);
  const int64_t bytes = p.dtype.bytes();
  const Array* constant = request.graph.constant_value(request.node.operands[1]);
  const bool steady = !constant && request.is_steady(1), packs = constant || steady;
  const ChunkSize chunk = chunk_size(p, packs);

  auto kernel = std::make_unique<StagedKernel>();
  std::map<std::array<int64_t, 3>, dnnl::matmul::primitive_desc> made;
  // Chunks of the same matrix and columns share packed weights when they want the same format.
  std::vector<std::tuple<memory::desc, int64_t, int64_t, Place>> packed;
  const auto place_of = [&](const memory::desc& desc, int64_t b0, int64_t n0, const auto& pack) {
    for (const auto& [format, matrix, column, place] : packed)
      if (matrix == b0 && column == n0 && format == desc) return place;
    packed.emplace_back(desc, b0, n0, pack());
    return std::get<Place>(packed.back());
  };
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
          at->second = dnnl::matmul::primitive_desc(engine(), a, packs ? any : b, y, attributes());
        }
        const dnnl::matmul::primitive_desc& desc = at->second;
        implementation = desc.impl_info_str();
        const int64_t offset_a = b0 * p.m * p.k + m0 * (p.transpose_a ? 1 : p.k),
                      offset_b = b0 * p.k * p.n + n0 * (p.transpose_b ? p.k : 1),
                      offset_y = b0 * p.m * p.n + m0 * p.n + n0;
        const Place weights = place_of(desc.weights_desc(), b0, n0, [&] {
          return kernel->pack(b, offset_b * bytes, desc.weights_desc(), constant, 0, steady);
        });
        kernel->chunk();
        kernel->call(dnnl::matmul(desc), desc,
                     {{DNNL_ARG_SRC, a, {Buffer::operand0, offset_a * bytes}},
                      {DNNL_ARG_WEIGHTS, desc.weights_desc(), weights},
                      {DNNL_ARG_DST, y, {Buffer::result, offset_y * bytes}}});
      }
  // Half of what a core can do, and what a call costs.
  kernel->estimate(static_cast<double>(2 * p.batch * p.m * p.k * p.n) / 60 +
                   1500.0 * static_cast<double>(chunks));
  kernel->describe(fmt::format("{}{}, {} chunk{} of {}×{}×{}×{}", implementation, packs ? " packed" : "",
                               chunks, chunks == 1 ? "" : "s", chunk.batch, chunk.m, p.k, chunk.n));
  return kernel;
}

}  // namespace millrace::onednn
