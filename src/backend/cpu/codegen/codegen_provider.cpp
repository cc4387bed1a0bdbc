#include "backend/cpu/codegen/codegen_provider.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <utility>

#include <millrace/operator.h>

#include "backend/cpu/codegen/compiled_group.h"
#include "base/format.h"

namespace millrace {
namespace {

using codegen::CompiledGroup;
using codegen::CompiledNest;

class CodegenKernel : public ChunkedKernel, public RowKernel {
 public:
  explicit CodegenKernel(std::shared_ptr<const CompiledGroup> group) : group_(std::move(group)) {}

  int64_t most_rows() const override { return group_->rows.most; }
  int64_t row_grain(int64_t rows) const override { return group_->rows.grain(rows); }
  bool takes_row(int operand) const override { return group_->rows.operands[operand]; }
  void prepare_rows(const RowUse& use) override;
  void run_rows(int64_t rows, int64_t begin, int64_t end, void* const* operands, void* const* results,
                void* /*scratch*/) override {
    void* buffers[CompiledGroup::most_buffers];
    gather(operands, results, buffers);
    const auto [first, last] = group_->rows.outer(rows, begin, end);
    phase_of_rows(buffers).run(buffers, first, last);
  }

  int stages() const override { return static_cast<int>(group_->phases.size()); }
  int64_t chunks(int stage) const override { return group_->phases[stage].chunks(); }
  double nanoseconds() const override {
    double sum = 0;
    for (const CompiledNest& phase : group_->phases) sum += phase.nanoseconds();
    return sum;
  }
  void run_chunk(int stage, int64_t chunk, void* const* operands, void* const* results,
                 void* scratch) override {
    void* buffers[CompiledGroup::most_buffers];
    size_t at = gather(operands, results, buffers);
    for (const int64_t offset : group_->partial_offsets) buffers[at++] = static_cast<char*>(scratch) + offset;
    if (stage == 0 && !aligned(buffers)) return group_->unaligned().run_chunk(buffers, chunk);
    group_->phases[stage].run_chunk(buffers, chunk);
  }
  int64_t scratch_bytes() const override { return group_->scratch_bytes; }
  std::string description() const override { return group_->description; }
  bool can_alias(int operand, int result) const override {
    return group_->aliases.contains({operand, result});
  }

 private:
  /// Operands, results and constants; returns how many.
  size_t gather(void* const* operands, void* const* results, void** buffers) const {
    std::copy_n(operands, group_->operands, buffers);
    std::copy_n(results, group_->results, buffers + group_->operands);
    size_t at = group_->operands + group_->results;
    for (const Array& constant : group_->constants) buffers[at++] = const_cast<void*>(constant.data());
    return at;
  }
  bool aligned(void* const* buffers) const {
    return std::all_of(group_->streamed.begin(), group_->streamed.end(),
                       [&](int buffer) { return reinterpret_cast<uintptr_t>(buffers[buffer]) % 64 == 0; });
  }
  const CompiledNest& phase_of_rows(void* const* buffers) {
    if (group_->streamed.empty() || (stream_rows_ && aligned(buffers)))
      return ahead_ ? *ahead_ : group_->phases[0];
    return ahead_ && !stream_rows_ ? *ahead_ : group_->unaligned();
  }

  const std::shared_ptr<const CompiledGroup> group_;
  std::optional<CompiledNest> ahead_;  // the first phase by rows, fetching ahead
  bool stream_rows_ = false;
};

void CodegenKernel::prepare_rows(const RowUse& use) {
  ahead_.reset();  // of another plan
  stream_rows_ = !group_->streamed.empty() && !use.read_soon;
  std::map<int, int64_t> ahead;
  for (size_t k = 0; k < use.ahead.size(); ++k)
    if (use.ahead[k] > 0) ahead[static_cast<int>(k)] = use.ahead[k];
  if (group_->nest && !ahead.empty()) {
    codegen::Nest nest = stream_rows_ ? *group_->nest : codegen::without_streams(*group_->nest);
    nest.ahead = std::move(ahead);
    ahead_.emplace(nest);
  } else if (!group_->streamed.empty() && use.read_soon) {
    (void)group_->unaligned();
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
    if (constexpr size_t most = CompiledGroup::most_buffers / 2;
        node.operands.size() + node.types.size() > most)
      return fmt::format("more than {} operands and results", most);
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
    return std::make_unique<CodegenKernel>(codegen::compiled_group(request));
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
