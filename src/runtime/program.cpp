#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

#include <millrace/program.h>

#include "backend/cpu/target.h"
#include "backend/ref/evaluate.h"
#include "backend/ref/provider.h"
#include "base/format.h"
#include "ir/operator.h"
#include "ops/check.h"
#include "passes/pass.h"
#include "plan/plan.h"

namespace millrace {
namespace {

const Target& target_named(const std::string& name) {
  static const Target cpu = cpu::make_target(), ref = ref::make_target();
  if (name == "cpu") return cpu;
  if (name == "ref") return ref;
  fail<InputError>("there is no back end '{}'; choose cpu or ref", name);
}

struct Free {
  void operator()(void* data) const { std::free(data); }
};

/// Memory for intermediates; large arenas ask for huge pages.
std::unique_ptr<void, Free> allocate_arena(int64_t bytes) {
  const size_t page = bytes < (8 << 20) ? 64 : 2 << 20;
  const size_t rounded = (static_cast<size_t>(std::max<int64_t>(bytes, 64)) + page - 1) / page * page;
  std::unique_ptr<void, Free> arena(std::aligned_alloc(page, rounded));
  if (!arena)
    fail<Error>("{:.1f} MB of memory for intermediate values could not be had; use a smaller batch",
                static_cast<double>(bytes) / 1e6);
  if (page > 64) madvise(arena.get(), rounded, MADV_HUGEPAGE);
  return arena;
}

}  // namespace

struct Program::Impl {
  Plan plan;
  ThreadPool* pool = nullptr;
  std::unique_ptr<void, Free> arena;
  std::vector<Array> inputs, outputs;
  std::map<int, int> donations;
  std::string precision;

  struct Launch {
    Kernel* kernel;
    void** operands;
    void** results;
    void* scratch;
  };
  std::vector<Launch> launches;
  std::vector<void*> pointers;  // what launches point into: operands and results of all, in order
  bool profiling = false;
  std::vector<int64_t> nanoseconds;

  void* address(int storage) {
    const Storage& s = plan.storages[storage];
    switch (s.kind) {
      case StorageKind::arena:
        return static_cast<char*>(arena.get()) + std::max<int64_t>(s.offset, 0);
      case StorageKind::input:
        return inputs[s.index].data();
      case StorageKind::output:
        return outputs[s.index].data();
      case StorageKind::constant:
        return const_cast<void*>(plan.source.graph.node(s.index).attributes.get<Array>("value").data());
    }
    return nullptr;
  }

  /// Writes every launch's pointers; again whenever an input is bound elsewhere.
  void bind_pointers() {
    size_t at = 0;
    for (PlannedLaunch& launch : plan.launches) {
      for (int s : launch.operands) pointers[at++] = address(s);
      for (int s : launch.results) pointers[at++] = address(s);
    }
    for (const auto& [output, input] : donations) outputs[output] = inputs[input];
  }

  void prepare() {
    size_t count = 0;
    for (const PlannedLaunch& launch : plan.launches) count += launch.operands.size() + launch.results.size();
    pointers.resize(count);
    bind_pointers();
    size_t at = 0;
    for (PlannedLaunch& launch : plan.launches) {
      Launch ready{launch.kernel.get(), pointers.data() + at, pointers.data() + at + launch.operands.size(),
                   nullptr};
      at += launch.operands.size() + launch.results.size();
      if (launch.scratch >= 0) ready.scratch = address(launch.scratch);
      launches.push_back(ready);
    }
    nanoseconds.assign(launches.size(), 0);
  }

  void finish_outputs() {
    for (const PlannedCopy& copy : plan.copies) {
      Array& to = copy.kind == StorageKind::input ? inputs[copy.index] : outputs[copy.index];
      std::memcpy(to.data(), address(copy.from), static_cast<size_t>(copy.bytes));
    }
  }
};

Program::Program(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Program::Program(Program&&) noexcept = default;
Program& Program::operator=(Program&&) noexcept = default;
Program::~Program() = default;

Program Program::compile(const Graph& graph, const CompileOptions& options) {
  check_operators();
  const Target& target = target_named(options.target);
  if (options.precision != "fp32" && options.precision != "bf16")
    fail<InputError>("there is no precision '{}'; choose fp32 or bf16", options.precision);
  auto impl = std::make_unique<Impl>();
  impl->pool = &ThreadPool::global();
  impl->donations = options.donations;
  impl->precision = options.precision == "bf16" && !target.fast_bf16 ? "fp32" : options.precision;
  Graph lowered = run_passes(specialise(graph, options.bindings),
                             {target, impl->precision, ref::evaluate_node, options.exact});
  impl->plan = make_plan(choose_layouts(lowered, target), target,
                         {options.donations, options.choices, options.exact}, *impl->pool);
  const Graph& final_graph = impl->plan.source.graph;
  for (size_t i = 0; i < final_graph.inputs().size(); ++i) {
    const Type& type = final_graph.type(final_graph.inputs()[i]);
    const auto given = options.inputs.find(static_cast<int>(i));
    impl->inputs.push_back(given == options.inputs.end() ? Array(type) : given->second);
    if (impl->inputs.back().type() != type)
      fail<TypeError>("input '{}' has type {}, the array given for it {}", final_graph.input_names()[i],
                      type.str(), impl->inputs.back().type().str());
  }
  for (const Value& output : final_graph.outputs()) {
    const int o = static_cast<int>(impl->outputs.size());
    const auto donation = options.donations.find(o);
    if (donation == options.donations.end()) {
      impl->outputs.emplace_back(final_graph.type(output));
      continue;
    }
    const Array& input = impl->inputs.at(donation->second);
    MILLRACE_CHECK(input.type() == final_graph.type(output),
                   "output {} of type {} is donated an input of type {}", o, final_graph.type(output).str(),
                   input.type().str());
    impl->outputs.push_back(input);
  }
  impl->arena = allocate_arena(impl->plan.arena_bytes);
  impl->prepare();
  return Program(std::move(impl));
}

Array& Program::input(int i) { return impl_->inputs.at(i); }
const Array& Program::output(int i) const { return impl_->outputs.at(i); }
int Program::input_count() const { return static_cast<int>(impl_->inputs.size()); }
int Program::output_count() const { return static_cast<int>(impl_->outputs.size()); }

void Program::bind_input(int i, Array array) {
  Array& input = impl_->inputs.at(i);
  if (array.type() != input.type())
    fail<TypeError>("input '{}' has type {}, the array bound to it {}",
                    impl_->plan.source.graph.input_names()[i], input.type().str(), array.type().str());
  input = std::move(array);
  impl_->bind_pointers();
}

void Program::run() {
  Impl& impl = *impl_;
  if (!impl.profiling) {
    for (const Impl::Launch& launch : impl.launches)
      launch.kernel->run(launch.operands, launch.results, launch.scratch, *impl.pool);
  } else {
    for (size_t l = 0; l < impl.launches.size(); ++l) {
      const Impl::Launch& launch = impl.launches[l];
      const auto start = std::chrono::steady_clock::now();
      launch.kernel->run(launch.operands, launch.results, launch.scratch, *impl.pool);
      impl.nanoseconds[l] =
          std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start)
              .count();
    }
  }
  impl.finish_outputs();
}

int64_t Program::arena_bytes() const { return impl_->plan.arena_bytes; }

int64_t Program::bound_bytes() const {
  int64_t bytes = 0;
  const Graph& graph = impl_->plan.source.graph;
  for (const Array& input : impl_->inputs) bytes += input.bytes();
  for (size_t o = 0; o < impl_->outputs.size(); ++o)
    if (!impl_->donations.count(static_cast<int>(o))) bytes += impl_->outputs[o].bytes();
  for (int i = 0; i < graph.size(); ++i)
    if (const Array* constant = graph.constant_value({i, 0})) bytes += constant->bytes();
  return bytes;
}

std::vector<std::pair<int64_t, std::string>> Program::peak_breakdown(int count) const {
  std::vector<std::pair<int64_t, std::string>> tensors;
  for (const Storage& s : impl_->plan.storages)
    if (s.kind == StorageKind::arena && s.first >= 0 && s.first <= impl_->plan.peak_launch &&
        s.last >= impl_->plan.peak_launch)
      tensors.emplace_back(s.bytes, s.label);
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  if (static_cast<int>(tensors.size()) > count) tensors.resize(count);
  return tensors;
}

const std::string& Program::precision() const { return impl_->precision; }

const std::map<std::string, std::string>& Program::choices() const { return impl_->plan.choices; }

namespace {

/// "conv2d in blocks.0.conv1" or "fused(mul add) in …".
std::string launch_name(const Graph& graph, const PlannedLaunch& launch) {
  const Node& node = graph.node(launch.node);
  std::string name(node.op->name);
  if (node.body && node.op->name == "fused") {
    std::string parts;
    for (int i = 0; i < node.body->size(); ++i)
      if (node.body->node(i).op->op_class != OpClass::structural)
        parts += (parts.empty() ? "" : " ") + std::string(node.body->node(i).op->name);
    name += "(" + parts + ")";
  }
  return node.location.empty() ? name : name + " in " + node.location;
}

}  // namespace

std::string Program::explain() const {
  std::string text;
  const Graph& graph = impl_->plan.source.graph;
  for (const PlannedLaunch& launch : impl_->plan.launches) {
    const Node& node = graph.node(launch.node);
    std::string types;
    for (size_t r = 0; r < node.types.size(); ++r) {
      const Layout& layout = impl_->plan.source.layouts[launch.node][r];
      types += fmt::format("{}{}{}", r ? ", " : "", node.types[r].str(),
                           layout.empty() ? "" : fmt::format(" laid out {}", fmt::join(layout, "")));
    }
    text += fmt::format("{}: {} -> {} [{}]{}\n", launch.provider, launch_name(graph, launch), types,
                        launch.kernel->description(),
                        launch.declined.empty() ? "" : " (declined: " + launch.declined + ")");
  }
  return text;
}

void Program::set_profiling(bool on) { impl_->profiling = on; }

std::vector<std::pair<std::string, int64_t>> Program::profile() const {
  std::vector<std::pair<std::string, int64_t>> rows;
  for (size_t l = 0; l < impl_->plan.launches.size(); ++l) {
    const PlannedLaunch& launch = impl_->plan.launches[l];
    rows.emplace_back(fmt::format("{}: {}", launch.provider, launch_name(impl_->plan.source.graph, launch)),
                      impl_->nanoseconds[l]);
  }
  return rows;
}

}  // namespace millrace
