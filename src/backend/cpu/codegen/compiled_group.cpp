#include "backend/cpu/codegen/compiled_group.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

#include <millrace/operator.h>

#include "base/format.h"
#include "ir/node_key.h"

namespace millrace::codegen {
namespace {

// How much work (Nest::cost) a thread does in a nanosecond, measured on nests in the cache.
constexpr double kWorkPerNanosecond = 25;

// Some microseconds; less is not worth handing to another thread.
constexpr double kWorkOfChunk = 60e3;

/// A result may take an operand's place when the operand is only read where the result is written, in the
/// same vector.
std::set<std::pair<int, int>> aliases_of(const Nest& nest, int operands) {
  std::set<std::pair<int, int>> aliases;
  for (int operand = 0; operand < operands; ++operand) {
    std::set<int> offsets;
    DType memory;
    for (int id = 0; id < nest.dag.size(); ++id) {
      const Expr& e = nest.dag[id];
      if (e.kind != ExprKind::load || e.bits != operand) continue;
      offsets.insert(e.args[0]);
      memory = e.memory;
    }
    if (offsets.size() > 1) continue;
    for (const Store& store : nest.stores) {
      const int result = store.buffer - operands;
      if (offsets.empty() || (*offsets.begin() == store.offset && memory.bytes() == store.memory.bytes()))
        aliases.insert({operand, result});
    }
  }
  return aliases;
}

/// What a group compiles to follows from these bytes.
std::string key_of(const KernelRequest& request, const Graph& body) {
  std::string key;
  // Of one element it becomes a part of the code; others stay where they are.
  const ArrayKey array = [](std::string& text, const Array& value) {
    if (value.count() == 1) return append_elements(text, value);
    append_key(text, value.type());
    append_bytes(text, value.data());
  };
  for (int i = 0; i < body.size(); ++i) {
    const Node& node = body.node(i);
    append_key(key, node, node.operands, array);
    for (const Type& type : node.types) append_key(key, type);
  }
  for (const auto& values : {body.inputs(), body.outputs()})
    for (const Value& value : values) append_bytes(key, value);
  for (const auto& layouts : {request.operand_layouts, request.result_layouts})
    for (const Layout& layout : layouts) {
      append_bytes(key, layout.size());
      for (const int axis : layout) append_bytes(key, axis);
    }
  return key;
}

/// Groups that somebody has.
class Groups {
 public:
  std::shared_ptr<const CompiledGroup> find(const std::string& key) {
    const std::lock_guard lock(mutex_);
    const auto found = all_.find(key);
    return found == all_.end() ? nullptr : found->second.lock();
  }

  void add(std::string key, const std::shared_ptr<const CompiledGroup>& group) {
    const std::lock_guard lock(mutex_);
    all_.insert_or_assign(std::move(key), group);
    if (all_.size() < most_) return;
    std::erase_if(all_, [](const auto& each) { return each.second.expired(); });
    most_ = std::max(2 * all_.size(), kFew);
  }

 private:
  static constexpr size_t kFew = 1024;
  std::mutex mutex_;
  std::unordered_map<std::string, std::weak_ptr<const CompiledGroup>> all_;
  size_t most_ = kFew;  // beyond which those that nobody has are looked for
};

}  // namespace

CompiledNest::CompiledNest(const Nest& nest) : outer_(nest.outer_count()), length_(nest.sizes()[0]) {
  const Nest any = nest.for_any_length();
  code_ =
      compile(any.text(), [&](llvm::Module& module, const std::string& name) { emit(any, module, name); });
  // Powers of two, so that threads get equal shares.
  work_ = nest.outer_elements() * static_cast<double>(outer_) * (nest.cost + 3);
  const auto wanted = std::bit_ceil(static_cast<uint64_t>(std::clamp(work_ / kWorkOfChunk, 1.0, 128.0)));
  const auto chunks = static_cast<int64_t>(wanted);
  per_chunk_ = (outer_ + chunks - 1) / chunks;
}

double CompiledNest::nanoseconds() const { return work_ / kWorkPerNanosecond; }

CompiledGroup::CompiledGroup(const KernelRequest& request)
    : operands(request.node.operands.size()), results(request.node.types.size()) {
  Group group = lower(request);
  constants = std::move(group.constants);
  Nest& whole = group.nest;
  const int first = static_cast<int>(operands + results + constants.size());
  const std::optional<Combination> last = schedule(whole, first);
  if (last)
    for (const int64_t bytes : last->partial_bytes) {
      partial_offsets.push_back(scratch_bytes);
      scratch_bytes += (bytes + 63) / 64 * 64;
    }
  MILLRACE_CHECK(first + partial_offsets.size() <= most_buffers, "a nest has more than {} buffers",
                 most_buffers);
  aliases = aliases_of(whole, static_cast<int>(operands));
  rows = rows_of(whole, request);
  phases.emplace_back(whole);
  if (last) phases.emplace_back(last->nest);
  for (const Store& store : whole.stores)
    if (store.stream_align > 0) streamed.push_back(store.buffer);
  bool far = false;
  for (size_t k = 0; k < operands; ++k) far |= request.operand_type(static_cast<int>(k)).bytes() >= kFarBytes;
  description = fmt::format("nest [{}], {} lanes, {} chunks{}", fmt::join(whole.sizes(), " × "), whole.lanes,
                            phases[0].chunks(), last ? fmt::format(", {} parts", whole.parts) : "");
  if (!streamed.empty() || (far && rows.most > 0)) nest = std::move(whole);
}

const CompiledNest& CompiledGroup::unaligned() const {
  std::call_once(unaligned_once_, [&] { unaligned_.emplace(without_streams(*nest)); });
  return *unaligned_;
}

Nest without_streams(Nest nest) {
  for (Store& store : nest.stores) store.stream_align = 0;
  return nest;
}

std::shared_ptr<const CompiledGroup> compiled_group(const KernelRequest& request) {
  static Groups groups;
  std::string key = key_of(request, *body_of(request.graph, request.node));
  if (auto known = groups.find(key)) return known;
  auto made = std::make_shared<const CompiledGroup>(request);
  groups.add(std::move(key), made);
  return made;
}

}  // namespace millrace::codegen
