#include "backend/cpu/codegen/codegen_provider.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <set>

#include <millrace/operator.h>

#include "backend/cpu/codegen/jit.h"
#include "backend/cpu/codegen/nest.h"
#include "base/format.h"

namespace millrace {
namespace {

using codegen::Code;
using codegen::Nest;

constexpr size_t kMaxBuffers = 512;

// How much work (Nest::cost) a thread does in a nanosecond, measured on nests in the cache.
constexpr double kWorkPerNanosecond = 25;

// Some microseconds; less is not worth handing to another thread.
constexpr double kWorkOfChunk = 60e3;

/// One nest, cut into chunks of outer iterations.
struct Phase {
  std::shared_ptr<const Code> code;
  int64_t outer = 1, per_chunk = 1;
  int64_t length = 1;  // of the slowest loop
  double work = 0;

  Phase(const Nest& nest) : outer(nest.outer_count()), length(nest.sizes()[0]) {
    const Nest any = nest.for_any_length();
    code = codegen::compile(any.text(),
                            [&](llvm::Module& m, const std::string& name) { codegen::emit(any, m, name); });
    // Powers of two, so that threads get equal shares.
    work = nest.outer_elements() * static_cast<double>(outer) * (nest.cost + 3);
    const auto wanted = std::bit_ceil(static_cast<uint64_t>(std::clamp(work / kWorkOfChunk, 1.0, 128.0)));
    const auto chunks = static_cast<int64_t>(wanted);
    per_chunk = (outer + chunks - 1) / chunks;
  }
  int64_t chunks() const { return (outer + per_chunk - 1) / per_chunk; }
  void run_chunk(void* const* buffers, int64_t chunk) const {
    const int64_t begin = chunk * per_chunk;
    run(buffers, begin, std::min(begin + per_chunk, outer));
  }
  void run(void* const* buffers, int64_t begin, int64_t end) const {
    code->function(buffers, begin, end, length);
  }
};

class CodegenKernel : public ChunkedKernel, public RowKernel {
 public:
  explicit CodegenKernel(const KernelRequest& request);

  int64_t most_rows() const override { return rows_.most; }
  int64_t row_grain(int64_t rows) const override { return rows_.grain(rows); }
  bool takes_row(int operand) const override { return rows_.operands[operand]; }
  void prepare_rows(const RowUse& use) override;
  void run_rows(int64_t rows, int64_t begin, int64_t end, void* const* operands, void* const* results,
                void* /*scratch*/) override {
    void* buffers[kMaxBuffers];
    gather(operands, results, buffers);
    const auto [first, last] = rows_.outer(rows, begin, end);
    phase_of_rows(buffers).run(buffers, first, last);
  }

  int stages() const override { return static_cast<int>(phases_.size()); }
  int64_t chunks(int stage) const override { return phases_[stage].chunks(); }
  double nanoseconds() const override {
    double sum = 0;
    for (const Phase& phase : phases_) sum += phase.work / kWorkPerNanosecond;
    return sum;
  }
  void run_chunk(int stage, int64_t chunk, void* const* operands, void* const* results,
                 void* scratch) override {
    void* buffers[kMaxBuffers];
    size_t at = gather(operands, results, buffers);
    for (const int64_t offset : partial_offsets_) buffers[at++] = static_cast<char*>(scratch) + offset;
    if (stage == 0 && !aligned(buffers)) return unaligned().run_chunk(buffers, chunk);
    phases_[stage].run_chunk(buffers, chunk);
  }
  int64_t scratch_bytes() const override { return scratch_bytes_; }
  std::string description() const override { return description_; }
  bool can_alias(int operand, int result) const override { return aliases_.count({operand, result}) > 0; }

 private:
  /// Operands, results and constants; returns how many.
  size_t gather(void* const* operands, void* const* results, void** buffers) const {
    std::copy_n(operands, operands_, buffers);
    std::copy_n(results, results_, buffers + operands_);
    size_t at = operands_ + results_;
    for (const Array& constant : constants_) buffers[at++] = const_cast<void*>(constant.data());
    return at;
  }
  bool aligned(void* const* buffers) const {
    return std::all_of(streamed_.begin(), streamed_.end(),
                       [&](int buffer) { return reinterpret_cast<uintptr_t>(buffers[buffer]) % 64 == 0; });
  }
  void find_aliases(const Nest& nest);
  const Phase& unaligned();
  const Phase& phase_of_rows(void* const* buffers) {
    if (streamed_.empty() || (stream_rows_ && aligned(buffers))) return ahead_ ? *ahead_ : phases_[0];
    return ahead_ && !stream_rows_ ? *ahead_ : unaligned();
  }

  size_t operands_, results_;
  std::vector<Array> constants_;
  std::vector<int64_t> partial_offsets_;
  int64_t scratch_bytes_ = 0;
  std::vector<Phase> phases_;
  std::vector<int> streamed_;  // buffers that must be aligned
  std::optional<Nest> nest_;   // the first phase's, where other code for it may be wanted
  std::once_flag unaligned_once_;
  std::optional<Phase> unaligned_;  // the first phase for buffers that are not aligned
  std::optional<Phase> ahead_;      // the first phase by rows, fetching ahead
  std::set<std::pair<int, int>> aliases_;
  codegen::NestRows rows_;
  bool stream_rows_ = false;
  std::string description_;
};

CodegenKernel::CodegenKernel(const KernelRequest& request)
    : operands_(request.node.operands.size()), results_(request.node.types.size()) {
  codegen::Group group = codegen::lower(request);
  constants_ = std::move(group.constants);
  Nest& nest = group.nest;
  const int first = static_cast<int>(operands_ + results_ + constants_.size());
  const std::optional<codegen::Combination> last = codegen::schedule(nest, first);
  if (last)
    for (const int64_t bytes : last->partial_bytes) {
      partial_offsets_.push_back(scratch_bytes_);
      scratch_bytes_ += (bytes + 63) / 64 * 64;
    }
  MILLRACE_CHECK(first + partial_offsets_.size() <= kMaxBuffers, "a nest has more than {} buffers",
                 kMaxBuffers);
  find_aliases(nest);
  rows_ = codegen::rows_of(nest, request);
  phases_.emplace_back(nest);
  if (last) phases_.emplace_back(last->nest);
  for (const codegen::Store& store : nest.stores)
    if (store.stream_align > 0) streamed_.push_back(store.buffer);
  bool far = false;
  for (size_t k = 0; k < operands_; ++k)
    far |= request.operand_type(static_cast<int>(k)).bytes() >= kFarBytes;
  if (!streamed_.empty() || (far && rows_.most > 0)) nest_ = nest;
  description_ = fmt::format("nest [{}], {} lanes, {} chunks{}", fmt::join(nest.sizes(), " × "), nest.lanes,
                             phases_[0].chunks(), last ? fmt::format(", {} parts", nest.parts) : "");
}

Nest without_streams(Nest nest) {
  for (codegen::Store& store : nest.stores) store.stream_align = 0;
  return nest;
}

void CodegenKernel::prepare_rows(const RowUse& use) {
  ahead_.reset();  // of another plan
  stream_rows_ = !streamed_.empty() && !use.read_soon;
  std::map<int, int64_t> ahead;
  for (size_t k = 0; k < use.ahead.size(); ++k)
    if (use.ahead[k] > 0) ahead[static_cast<int>(k)] = use.ahead[k];
  if (nest_ && !ahead.empty()) {
    Nest nest = stream_rows_ ? *nest_ : without_streams(*nest_);
    nest.ahead = std::move(ahead);
    ahead_.emplace(nest);
  } else if (!streamed_.empty() && use.read_soon) {
    (void)unaligned();
  }
}

/// Foreign memory may stand anywhere: code without streaming stores, compiled when it is first needed.
const Phase& CodegenKernel::unaligned() {
  std::call_once(unaligned_once_, [&] { unaligned_.emplace(without_streams(*nest_)); });
  return *unaligned_;
}

/// A result may take an operand's place when the operand is only read where the result is written, in the
/// same vector.
void CodegenKernel::find_aliases(const Nest& nest) {
  for (int operand = 0; operand < static_cast<int>(operands_); ++operand) {
    std::set<int> offsets;
    DType memory;
    for (int id = 0; id < nest.dag.size(); ++id) {
      const codegen::Expr& e = nest.dag[id];
      if (e.kind != codegen::ExprKind::load || e.bits != operand) continue;
      offsets.insert(e.args[0]);
      memory = e.memory;
    }
    if (offsets.size() > 1) continue;
    for (const codegen::Store& store : nest.stores) {
      const int result = store.buffer - static_cast<int>(operands_);
      if (offsets.empty() || (*offsets.begin() == store.offset && memory.bytes() == store.memory.bytes()))
        aliases_.insert({operand, result});
    }
  }
}

/// Results of a group over an empty space: nothing, or reductions of nothing.
class EmptyKernel : public Kernel {
 public:
  explicit EmptyKernel(const KernelRequest& request) {
    for (size_t r = 0; r < request.node.types.size(); ++r) {
      const Node* node = &request.node;
      if (node->op->op_class == OpClass::group) node = &node->body->node(node->body->outputs()[r]);
      values_.push_back(
          Array::full(request.node.types[r].dtype, request.node.types[r].shape, value_of(*node)));
    }
  }
  void run(void* const*, void* const* results, void*, DeviceContext) override {
    for (size_t r = 0; r < values_.size(); ++r)
      if (values_[r].count() > 0)
        std::memcpy(results[r], values_[r].data(), static_cast<size_t>(values_[r].bytes()));
  }
  std::string description() const override { return "nothing to do"; }

 private:
  static double value_of(const Node& node) {
    if (!node.op->reduction) return 0;
    switch (*node.op->reduction) {
      case Reduction::mean:
        return std::numeric_limits<double>::quiet_NaN();
      case Reduction::max:
        return -std::numeric_limits<double>::infinity();
      case Reduction::min:
        return std::numeric_limits<double>::infinity();
      default:
        return 0;
    }
  }
  std::vector<Array> values_;
};

class CodegenProvider : public Provider {
 public:
  std::string name() const override { return "codegen"; }

  std::optional<std::string> why_not(const Graph&, const Node& node) const override {
    if (node.operands.size() + node.types.size() > kMaxBuffers / 2)
      return fmt::format("more than {} operands and results", kMaxBuffers / 2);
    return codegen::why_not_lower(node);
  }

  LayoutWish layouts(const Graph&, const Node& node) const override {
    LayoutWish any;
    any.operands.resize(node.operands.size());
    any.results.resize(node.types.size());
    return any;
  }

  std::unique_ptr<Kernel> build(const KernelRequest& request) const override {
    if (codegen::space_of(request.graph, request.node).count() == 0)
      return std::make_unique<EmptyKernel>(request);
    return std::make_unique<CodegenKernel>(request);
  }
};

}  // namespace

std::unique_ptr<Provider> make_codegen_provider() { return std::make_unique<CodegenProvider>(); }

namespace cpu {
MILLRACE_PROVIDER(codegen){
    .name = "codegen",
    .doc = "loop nests compiled by LLVM: element-wise, movement, reductions, and fused groups of them",
    .place = 120,
    .make = make_codegen_provider};
}  // namespace cpu

}  // namespace millrace
