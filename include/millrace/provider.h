// Providers: where the kernels of compiled programs come from.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/device.h>
#include <millrace/graph.h>

namespace millrace {

/// The physical order of a value's dimensions, outermost first: {0, 2, 3, 1} stores [N, C, H, W]
/// channels-last. Empty means row-major. Memory is always dense.
using Layout = std::vector<int>;

/// Row-major strides, in elements, of each logical dimension under a layout.
std::vector<int64_t> strides_of(const Shape& shape, const Layout& layout);

/// A node to build a kernel for. All shapes are static.
struct KernelRequest {
  const Graph& graph;
  const Node& node;
  std::vector<Layout> operand_layouts;
  std::vector<Layout> result_layouts;
  /// Operands that stay the same from one Kernel::prepare() to the next (a loop's invariants); empty: none.
  std::vector<char> steady = {};
  bool is_steady(int i) const { return i < static_cast<int>(steady.size()) && steady[i]; }
  const Type& operand_type(int i) const { return graph.type(node.operands[i]); }
};

/// Built code for one node. run() does not allocate, and its result does not depend on the number of threads.
class Kernel {
 public:
  virtual ~Kernel() = default;
  /// Programs of one Executable run at the same time. Null: they may share this kernel, since a run writes
  /// to results and scratch alone. Else a kernel for one more of them, which shares what no run changes
  /// (packed constants, code).
  virtual std::unique_ptr<Kernel> another() const { return nullptr; }
  /// operands, results: dense buffers in the requested layouts; scratch: scratch_bytes() bytes, 64-byte
  /// aligned.
  virtual void run(void* const* operands, void* const* results, void* scratch, DeviceContext device) = 0;
  virtual int64_t scratch_bytes() const { return slots_bytes(); }
  /// Of these, what depends on the number of threads.
  virtual int64_t slots_bytes() const { return 0; }
  /// Called before the first run, and again whenever a steady operand has changed: computes what depends on
  /// these alone (packed weights) into `kept`, kept_bytes() bytes that nothing else writes to until the last
  /// run.
  virtual void prepare(void* const* /*operands*/, void* /*kept*/, void* /*scratch*/, DeviceContext) {}
  virtual int64_t kept_bytes() const { return 0; }
  /// Words for explain: implementation, chunks.
  virtual std::string description() const = 0;
  /// Result r may share the buffer of operand o (element-wise kernels with equal layouts).
  virtual bool can_alias(int /*operand*/, int /*result*/) const { return false; }
};

/// A kernel cut into chunks: stages run one after the other, the chunks of a stage at the same time. Chunks
/// are fixed by the problem. The plan lets small launches that do not depend on each other run as one, with
/// the union of their chunks.
class ChunkedKernel : public Kernel {
 public:
  virtual int stages() const { return 1; }
  virtual int64_t chunks(int stage) const = 0;
  virtual void run_chunk(int stage, int64_t chunk, void* const* operands, void* const* results,
                         void* scratch) = 0;
  /// Rough time of a run on one thread; 0 when it is not known.
  virtual double nanoseconds() const { return 0; }
  void run(void* const* operands, void* const* results, void* scratch, DeviceContext device) override;
};

/// Layouts a provider wants for a node's operands and results; nullopt: any (the value's producer decides).
struct LayoutWish {
  std::vector<std::optional<Layout>> operands, results;
};

/// One source of kernels. A back end has an ordered list; the first that supports a node builds it.
class Provider {
 public:
  virtual ~Provider() = default;
  virtual std::string name() const = 0;
  /// Why this provider does not take the node; nullopt when it does. Layouts are not yet decided.
  virtual std::optional<std::string> why_not(const Graph& graph, const Node& node) const = 0;
  /// Whether the node's operator is one that this provider has kernels for: else nobody need be told why it
  /// does not take the node.
  virtual bool concerns(const Node& /*node*/) const { return true; }
  /// Layouts for the node that give the fastest kernel; by default the usual one of all operands and results.
  virtual LayoutWish layouts(const Graph& graph, const Node& node) const;
  virtual std::unique_ptr<Kernel> build(const KernelRequest& request) const = 0;
  /// True when the provider after this one that takes the node, with the same layouts, may be faster: the
  /// plan times both, once. The target's last provider, which takes what is left, is never timed.
  virtual bool contested(const Graph& /*graph*/, const Node& /*node*/) const { return false; }
  /// False when results differ from the direct computation by more than the order of its sums.
  virtual bool exact() const { return true; }
};

/// A provider of kernels for given operators.
class OperatorProvider : public Provider {
 public:
  using Build = std::unique_ptr<Kernel> (*)(const KernelRequest&);
  /// `others`: why other operators are not taken ("only matmul"), nor those whose kernel is null.
  OperatorProvider(std::string others, std::vector<std::pair<std::string_view, Build>> kernels);
  std::optional<std::string> why_not(const Graph& graph, const Node& node) const final;
  bool concerns(const Node& node) const final { return find(node.op) != nullptr; }
  std::unique_ptr<Kernel> build(const KernelRequest& request) const override;

 protected:
  /// Of one of its operators; by default all are taken.
  virtual std::optional<std::string> why_not_this(const Graph& /*graph*/, const Node& /*node*/) const {
    return std::nullopt;
  }

 private:
  Build find(const Operator* op) const;
  std::string others_;
  std::vector<std::pair<const Operator*, Build>> kernels_;
};

/// A provider of the cpu back end. Operators that stand in groups ("fuse") are compiled together: heavy ones
/// never do, and get their kernels from the first provider that takes them.
struct ProviderKind {
  std::string_view name, doc = {};  // their text must stay
  int place = 0;                    // in the order of preference; the library's have 10, 20 …
  std::unique_ptr<Provider> (*make)() = nullptr;
};

/// Adds a provider to those of the cpu back end; programs that were compiled before do without. InputError
/// when its name is taken, or `doc` or `make` is missing.
const ProviderKind& register_provider(const ProviderKind& kind);

}  // namespace millrace
