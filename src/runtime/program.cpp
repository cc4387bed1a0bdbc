#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>

#include <millrace/cancel.h>
#include <millrace/operator.h>
#include <millrace/program.h>

#include "base/format.h"
#include "base/run_token.h"
#include "ir/operators.h"
#include "plan/constants.h"
#include "plan/plan_kernels.h"
#include "runtime/arena.h"
#include "runtime/kept_copies.h"
#include "runtime/launches.h"
#include "runtime/lower.h"
#include "runtime/ready.h"
#include "runtime/run_clock.h"
#include "target/device.h"
#include "target/shared_constants.h"
#include "target/slot.h"

namespace millrace {
namespace {

/// Where launches find an array: a run says itself what it writes (Array::mark_written).
void* address_of(const Array& array) { return const_cast<void*>(array.data()); }

// Waking a sleeping thread, or handing over to one that spins, is not worth less work than this, in
// nanoseconds.
constexpr double kWorthWaking = 3000;
// A small network's run takes a microsecond: to take turns with so few bytes is not worth a tenth of it.
constexpr int64_t kWorthSharing = 64 << 10;

/// Donations of outputs that are there, each to an input of its own, of the same type.
void check_donations(const Graph& graph, const std::map<int, int>& donations) {
  std::set<int> taken;
  for (const auto& [output, input] : donations) {
    if (output < 0 || output >= static_cast<int>(graph.outputs().size()))
      fail<InputError>("output {} is donated an input, but there are {} outputs", output,
                       graph.outputs().size());
    if (input < 0 || input >= static_cast<int>(graph.inputs().size()))
      fail<InputError>("output {} is donated input {}, but there are {} inputs", output, input,
                       graph.inputs().size());
    const Type &from = graph.type(graph.inputs()[input]), &to = graph.type(graph.outputs()[output]);
    if (from != to)
      fail<TypeError>("output {} of type {} is donated input '{}' of type {}", output, to.str(),
                      graph.input_names()[input], from.str());
    if (!taken.insert(input).second)
      fail<InputError>("input '{}' is donated to two outputs", graph.input_names()[input]);
  }
}

}  // namespace

struct Executable::Impl : Lowered {
  const Device* device = nullptr;
  std::string precision;
  int user_inputs = 0, user_outputs = 0;
  std::vector<char> donated;  // of each input: whether an output is written into it
  PlanKernels kernels;
};

Executable::Executable(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}
Executable::~Executable() = default;

const std::string& Executable::device() const { return impl_->device->name; }

std::vector<Array> Executable::constants() const { return constants_of(impl_->plan); }

int64_t Executable::program_bytes() const { return arena_bytes() + impl_->argument_bytes(); }
int64_t Executable::arena_bytes() const { return impl_->plan.arena_bytes; }

int64_t Executable::plan_bytes() const {
  constexpr int64_t of_a_launch = 10 << 10;  // measured on texts' encoders of 94 and 184 launches
  return of_a_launch * std::ssize(impl_->plan.launches);
}

/// What it takes to run an executable.
struct Program::Impl {
  std::shared_ptr<const Executable> executable;
  const Executable::Impl& compiled;
  const Plan& plan;
  PlanKernels plan_kernels;
  DeviceContext device;
  int most_threads = 0;                  // of the device; 0: all
  const std::shared_ptr<Arenas> arenas;  // null: it has its own
  Arena own_arena;
  void* arena = nullptr;               // where pointers into it point; null: it never ran
  std::vector<Array> inputs, outputs;  // the user's, then copies of parameters
  std::shared_ptr<KeptCopies> kept;    // null: nothing is kept from run to run

  Impl(std::shared_ptr<const Executable> which, const std::map<int, Array>& given,
       const Program* share_copies, const std::shared_ptr<Arenas>& shared);

  struct Launch {
    Kernel* kernel;
    ChunkedKernel* chunked;  // the same, or null
    RowKernel* by_rows;      // the same, or null
    void** operands;
    void** results;
    void* scratch;
    /// In a chain: of each pointer the bytes of a row and from slot to slot, 0 where the whole tensor is
    /// there.
    std::vector<std::pair<int64_t, int64_t>> windows;
    void run(DeviceContext device) const { kernel->run(operands, results, scratch, device); }
  };
  std::vector<Launch> launches;
  /// One chunk of a launch.
  struct Task {
    int launch, stage;
    int64_t chunk;
  };
  /// Launches [first, first + count) that run at the same time: stage by stage the chunks of all, in `tasks`.
  /// A lone one has no tasks: it runs itself.
  struct Wave {
    int first, count;
    std::vector<std::pair<int, int>> stages;  // ranges of `tasks`
    bool parallel;                            // worth waking others for
    int chain = -1;                           // launches that run row by row
  };
  std::vector<Wave> waves;
  std::deque<Slots> slots;  // of each chain
  std::vector<Task> tasks;
  std::vector<void*> pointers;  // what launches point into: operands and results of all, in order
  std::vector<std::pair<size_t, int>> bound_pointers;  // of these, those into inputs and outputs: and where
  std::vector<std::pair<size_t, int>> arena_pointers;  // those into the arena
  std::vector<const void*> bound;                      // the inputs' memory that pointers were made for
  bool output_bound = false;                           // an output was bound elsewhere since then
  std::unique_ptr<RunClock> clock;                     // while profiling

  void* address(int storage) {
    const Storage& s = plan.storages[storage];
    switch (s.kind) {
      case StorageKind::arena:
        return arena ? static_cast<char*>(arena) + std::max<int64_t>(s.offset, 0) : nullptr;
      case StorageKind::input:
        return address_of(inputs[s.index]);
      case StorageKind::output:
        return address_of(outputs[s.index]);
      case StorageKind::constant:
        return address_of(plan.source.graph.node(s.index).attributes.get<Array>("value"));
    }
    return nullptr;
  }

  /// Writes every launch's pointers, once: only those into inputs and outputs will be others.
  void write_pointers() {
    for (const PlannedLaunch& launch : plan.launches)
      for (const std::vector<int>* list : {&launch.operands, &launch.results})
        for (const int s : *list) {
          const StorageKind kind = plan.storages[s].kind;
          if (kind == StorageKind::input || kind == StorageKind::output)
            bound_pointers.emplace_back(pointers.size(), s);
          else if (kind == StorageKind::arena)
            arena_pointers.emplace_back(pointers.size(), s);
          pointers.push_back(address(s));
        }
  }

  /// When an input or output was bound elsewhere.
  void bind_pointers() {
    for (const auto& [at, storage] : bound_pointers) pointers[at] = address(storage);
    for (const auto& [output, input] : compiled.copies.donations) outputs[output] = inputs[input];
    for (size_t i = 0; i < inputs.size(); ++i) bound[i] = address_of(inputs[i]);
    output_bound = false;
  }

  void move_arena(void* to) {
    if (to == arena) return;
    arena = to;
    for (const auto& [at, storage] : arena_pointers) pointers[at] = address(storage);
    for (size_t l = 0; l < launches.size(); ++l)
      if (const int scratch = plan.launches[l].scratch; scratch >= 0) launches[l].scratch = address(scratch);
  }

  const std::string& input_name(size_t i) const { return plan.source.graph.input_names()[i]; }

  void check_type(size_t i, const Array& array) const {
    const Type& type = plan.source.graph.type(plan.source.graph.inputs()[i]);
    if (array.type() != type)
      fail<TypeError>("input '{}' has type {}, the array given for it {}", input_name(i), type.str(),
                      array.type().str());
    compiled.device->require_readable(array, input_name(i));
  }

  /// What is written in place of one input must not be read as another.
  void check_shared(size_t i) const {
    const auto begin = [&](size_t k) { return static_cast<const char*>(inputs[k].data()); };
    for (size_t k = 0; k < inputs.size(); ++k)
      if (k != i && (compiled.donated[i] || compiled.donated[k]) && begin(i) &&
          begin(i) < begin(k) + inputs[k].bytes() && begin(k) < begin(i) + inputs[i].bytes())
        fail<InputError>("inputs '{}' and '{}' share memory, and '{}' is updated in place: give each its own",
                         input_name(i), input_name(k), input_name(compiled.donated[i] ? i : k));
  }

  /// Takes note of inputs that were bound or assigned another array, and refuses those that cannot be used.
  void check_bound() {
    bool changed = output_bound;
    for (size_t o = 0; output_bound && o < outputs.size(); ++o)
      if (outputs[o].empty() && outputs[o].type().shape.count() > 0)
        fail<TypeError>("output {} is bound to an array without memory", o);
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (address_of(inputs[i]) == bound[i] && bound[i]) continue;
      check_type(i, inputs[i]);
      if (inputs[i].empty() && inputs[i].type().shape.count() > 0)
        fail<TypeError>("input '{}' is an array without memory", input_name(i));
      check_shared(i);
      changed = true;
    }
    if (changed) bind_pointers();
  }

  void prepare() {
    bound.resize(inputs.size());
    write_pointers();
    bind_pointers();
    size_t at = 0;
    for (const PlannedLaunch& launch : plan.launches) {
      Kernel* const kernel = &plan_kernels[launches.size()];
      launches.push_back({kernel,
                          dynamic_cast<ChunkedKernel*>(kernel),
                          dynamic_cast<RowKernel*>(kernel),
                          pointers.data() + at,
                          pointers.data() + at + launch.operands.size(),
                          launch.scratch >= 0 ? address(launch.scratch) : nullptr,
                          {}});
      at += launch.operands.size() + launch.results.size();
    }
    for (const Chain& chain : plan.chains) slots.emplace_back(chain.slots, 64);
    for (size_t first = 0, last; first < launches.size(); first = last) {
      for (last = first; last < launches.size() && plan.launches[last].wave == plan.launches[first].wave;)
        ++last;
      prepare_wave(static_cast<int>(first), static_cast<int>(last - first));
    }
  }

  void prepare_wave(int first, int count) {
    Wave& wave = waves.emplace_back(Wave{first, count, {}, false, plan.launches[first].chain});
    if (wave.chain >= 0) {
      for (int l = first; l < first + count; ++l) find_windows(l);
      return;
    }
    double time = 0;
    int stages = 0;
    for (int l = first; l < first + count; ++l) {
      const ChunkedKernel* const kernel = launches[l].chunked;
      if (count == 1 && (!kernel || kernel->nanoseconds() <= 0)) return;
      MILLRACE_CHECK(kernel, "a launch without chunks shares a wave");
      time += kernel->nanoseconds();
      stages = std::max(stages, kernel->stages());
    }
    wave.parallel = time > kWorthWaking;
    if (count == 1 && (wave.parallel || stages == 0)) return;
    for (int stage = 0; stage < stages; ++stage) {
      const size_t begin = tasks.size();
      for (int l = first; l < first + count; ++l)
        if (const ChunkedKernel& kernel = *launches[l].chunked; stage < kernel.stages())
          for (int64_t chunk = 0; chunk < kernel.chunks(stage); ++chunk) tasks.push_back({l, stage, chunk});
      // Threads take ranges of this order: the same part of each launch's data, and of the lone chunks some
      // each.
      const auto place = [&](const Task& task) {
        const auto chunks = static_cast<double>(launches[task.launch].chunked->chunks(task.stage));
        const double spread = 0.618 * (task.launch - first + 1);
        return chunks > 1 ? (static_cast<double>(task.chunk) + 0.5) / chunks : spread - std::floor(spread);
      };
      std::stable_sort(tasks.begin() + static_cast<std::ptrdiff_t>(begin), tasks.end(),
                       [&](const Task& a, const Task& b) { return place(a) < place(b); });
      wave.stages.emplace_back(begin, tasks.size());
    }
  }

  void find_windows(int l) {
    const PlannedLaunch& launch = plan.launches[l];
    const Chain& chain = plan.chains[launch.chain];
    for (const std::vector<int>* list : {&launch.operands, &launch.results})
      for (const int s : *list) {
        const Storage& storage = plan.storages[s];
        launches[l].windows.emplace_back(storage.row_bytes,
                                         storage.row_bytes > 0 ? window_bytes(chain, storage) : 0);
      }
  }

  /// Runs a chain; `spent`: nanoseconds that each launch took, over all threads, when somebody wants to know.
  void run_chain(const Wave& wave, std::atomic<int64_t>* spent) {
    const Chain& chain = plan.chains[wave.chain];
    for (int l = wave.first; l < wave.first + wave.count; ++l) {
      const int64_t from = spent ? clock_now() : 0;
      for (int stage = 0; stage < launches[l].by_rows->first_stages(); ++stage)
        device.threads().parallel(launches[l].chunked->chunks(stage), [&](int64_t chunk) {
          run_task({l, stage, chunk});
        });
      if (spent) spent[l - wave.first] += (clock_now() - from) * device.threads().threads();
    }
    device.threads().parallel(chain.chunks(), [&](int64_t chunk) {
      const Slot slot(slots[wave.chain]);
      const int64_t begin = chunk * chain.chunk, end = std::min(begin + chain.chunk, chain.rows);
      for (int l = wave.first; l < wave.first + wave.count; ++l) {
        const Launch& launch = launches[l];
        void* at[kMostPointers];
        for (size_t k = 0; k < launch.windows.size(); ++k) {
          const auto& [row, window] = launch.windows[k];
          at[k] = static_cast<char*>(launch.operands[k]) + slot.index() * window - begin * row;
        }
        const int64_t from = spent ? clock_now() : 0;
        launch.by_rows->run_rows(chain.rows, begin, end, at, at + (launch.results - launch.operands),
                                 launch.scratch);
        if (spent) spent[l - wave.first] += clock_now() - from;
      }
    });
  }

  /// The members of a chain share its time as they took their threads'.
  void run_chain_timed(const Wave& wave) {
    std::vector<std::atomic<int64_t>> spent(wave.count);
    const int64_t begin = clock_now();
    run_chain(wave, spent.data());
    const int64_t took = clock_now() - begin;
    int64_t all = 1, so_far = 0;
    for (const auto& part : spent) all += part;
    for (const auto& part : spent) {
      so_far += part;
      clock->mark(begin + static_cast<int64_t>(static_cast<double>(took) * static_cast<double>(so_far) /
                                               static_cast<double>(all)));
    }
  }

  void run_task(const Task& task) const {
    const Launch& launch = launches[task.launch];
    launch.chunked->run_chunk(task.stage, task.chunk, launch.operands, launch.results, launch.scratch);
  }

  /// While profiling launch by launch, with the time of each.
  void replay() {
    const ThreadPool::Step step(device.threads(), most_threads);
    if (clock) clock->begin();
    for (const Wave& wave : waves) {
      RunToken::go_on();
      if (wave.chain >= 0) {
        if (clock)
          run_chain_timed(wave);
        else
          run_chain(wave, nullptr);
        continue;
      }
      if (clock || wave.stages.empty()) {
        for (int l = wave.first; l < wave.first + wave.count; ++l) {
          launches[l].run(device);
          if (clock) clock->mark();
        }
        continue;
      }
      for (const auto& [begin, end] : wave.stages) {
        if (wave.parallel)
          device.threads().parallel(end - begin, [&, from = begin](int64_t i) { run_task(tasks[from + i]); });
        else
          for (int i = begin; i < end; ++i) run_task(tasks[i]);
      }
    }
  }

  void finish_outputs() {
    for (const PlannedCopy& copy : plan.copies) {
      void* const to = copy.kind == StorageKind::arena   ? address(copy.index)
                       : copy.kind == StorageKind::input ? address_of(inputs[copy.index])
                                                         : address_of(outputs[copy.index]);
      std::memcpy(to, address(copy.from), static_cast<size_t>(copy.bytes));
    }
  }
};

/// Makes executables, of graphs and of what passes made of them.
struct Compiler {
  /// `keep`: for ready_of().
  static std::shared_ptr<const Executable> compile(const Graph& graph, const CompileOptions& options,
                                                   bool keep);
  static ReadyGraph ready_of(const Executable& executable) {
    ReadyGraph ready{*executable.impl_->lowered, executable.impl_->plan.choices, {}};
    const std::vector<Array> used = executable.constants();
    for (int i = 0; i < ready.graph.size(); ++i) {
      const Array* const constant = ready.graph.constant_value({i, 0});
      if (!constant || constant->empty()) continue;
      for (NamedForm& each : forms_of(*constant))
        if (std::any_of(used.begin(), used.end(),
                        [&](const Array& array) { return array.shares_memory(each.array); }))
          ready.packed.push_back({*constant, std::move(each.form), std::move(each.array)});
    }
    return ready;
  }
};

std::shared_ptr<const Executable> Executable::compile(const Graph& graph, const CompileOptions& options) {
  return Compiler::compile(graph, options, false);
}

ReadyGraph make_ready(const Graph& graph, const CompileOptions& options) {
  MILLRACE_CHECK(options.donations.empty() && options.memory == 0, "what is kept has neither");
  return Compiler::ready_of(*Compiler::compile(graph, options, true));
}

std::shared_ptr<const Executable> Compiler::compile(const Graph& graph, const CompileOptions& options,
                                                    bool keep) {
  check_operators();
  const Device& device = device_named(options.target);
  const Target& target = device.target();
  if (options.memory < 0)
    fail<InputError>("the memory allowed is {} bytes; 0 stands for as much as it takes", options.memory);
  auto impl = std::make_unique<Executable::Impl>();
  impl->device = &device;
  impl->precision = precision_on(target, options);
  const Graph special = specialise(graph, options.bindings);
  check_donations(special, options.donations);
  impl->user_inputs = static_cast<int>(special.inputs().size());
  impl->user_outputs = static_cast<int>(special.outputs().size());
  static_cast<Lowered&>(*impl) = lower(special, target, impl->precision, options, device.context(), keep);
  release_packed_constants(impl->plan);
  impl->kernels = PlanKernels(impl->plan);
  impl->donated.resize(impl->plan.source.graph.inputs().size());
  for (const auto& donation : impl->copies.donations) impl->donated[donation.second] = 1;
  return std::shared_ptr<const Executable>(new Executable(std::move(impl)));
}

Program::Impl::Impl(std::shared_ptr<const Executable> which, const std::map<int, Array>& given,
                    const Program* share_copies, const std::shared_ptr<Arenas>& shared)
    : executable(std::move(which)),
      compiled(*executable->impl_),
      plan(compiled.plan),
      plan_kernels(compiled.kernels),
      device(compiled.device->context()),
      arenas(shared && shared->in_turns() && plan.arena_bytes >= kWorthSharing ? shared : nullptr) {
  if (!compiled.copies.make.outputs().empty()) {
    const std::shared_ptr<KeptCopies> others = share_copies ? share_copies->impl_->kept : nullptr;
    kept = others && others->fits(compiled.copies.make)
               ? others
               : std::make_shared<KeptCopies>(compiled.copies.make, compiled.device->name);
  }
  const Graph& graph = plan.source.graph;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const int copy = static_cast<int>(i) - compiled.user_inputs;
    const auto bound_to = given.find(static_cast<int>(i));
    if (copy >= 0)
      inputs.push_back(kept->copy(copy));
    else
      inputs.push_back(bound_to == given.end() ? compiled.device->allocate(graph.type(graph.inputs()[i]))
                                               : bound_to->second);
    check_type(i, inputs.back());
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    if (compiled.donated[i]) check_shared(i);
  for (const Value& output : graph.outputs()) {
    const auto donation = compiled.copies.donations.find(static_cast<int>(outputs.size()));
    if (donation != compiled.copies.donations.end())
      outputs.push_back(inputs[donation->second]);
    else if (shared)
      outputs.emplace_back(graph.type(output), nullptr, nullptr);
    else
      outputs.push_back(compiled.device->allocate(graph.type(output)));
  }
  if (!arenas) own_arena = allocate_arena(plan.arena_bytes);
  arena = own_arena.get();
  prepare();
  output_bound = shared != nullptr;  // none is yet
}

Program::Program(std::shared_ptr<const Executable> executable, const std::map<int, Array>& inputs,
                 const Program* share_copies, const std::shared_ptr<Arenas>& arenas)
    : impl_(std::make_unique<Impl>(std::move(executable), inputs, share_copies, arenas)) {}
Program::Program(Program&&) noexcept = default;
Program& Program::operator=(Program&&) noexcept = default;
Program::~Program() = default;

Program Program::compile(const Graph& graph, const CompileOptions& options) {
  return Program(Executable::compile(graph, options), options.inputs, options.share_copies);
}

const std::shared_ptr<const Executable>& Program::executable() const { return impl_->executable; }

Array& Program::input(int i) {
  if (i < 0 || i >= input_count())
    fail<InputError>("there is no input {}; the program has {}", i, input_count());
  return impl_->inputs[i];
}

const Array& Program::output(int i) const {
  if (i < 0 || i >= output_count())
    fail<InputError>("there is no output {}; the program has {}", i, output_count());
  return impl_->outputs[i];
}

int Program::input_count() const { return impl_->compiled.user_inputs; }
int Program::output_count() const { return impl_->compiled.user_outputs; }

void Program::bind_input(int i, Array array) {
  Array& bound = input(i);
  impl_->check_type(i, array);
  bound = std::move(array);
  for (const auto& [output, from] : impl_->compiled.copies.donations)
    if (from == i) impl_->outputs[output] = bound;
}

void Program::bind_output(int i, const Array& array) {
  const Type& type = output(i).type();
  if (array.type() != type)
    fail<TypeError>("output {} has type {}, the array given for it {}", i, type.str(), array.type().str());
  if (impl_->compiled.copies.donations.contains(i))
    fail<InputError>("output {} is written into an input: bind that", i);
  impl_->outputs[i] = array;
  impl_->output_bound = true;
}

void Program::set_threads(int most) { impl_->most_threads = most; }

void Program::run() { run(CancelToken::never()); }

void Program::run(const CancelToken& cancel) {
  const RunToken token(cancel);
  Impl& impl = *impl_;
  impl.check_bound();
  if (impl.kept) impl.kept->refresh(impl.inputs, impl.compiled.copies.parameters);
  for (const Array& output : impl.outputs) output.mark_written();
  std::optional<Arenas::Lease> lease;
  if (impl.arenas) {
    lease.emplace(*impl.arenas, impl.plan.arena_bytes);
    impl.move_arena(lease->memory());
  }
  impl.replay();
  impl.finish_outputs();
  if (impl.clock) impl.clock->mark();
  if (impl.kept) impl.kept->note(impl.inputs, impl.compiled.copies.parameters);
}

std::vector<CopyInfo> Program::copies() const { return impl_->compiled.copies.copies; }

int64_t Program::times_copied() const { return impl_->kept ? impl_->kept->times_made() : 0; }

int64_t Program::arena_bytes() const { return impl_->plan.arena_bytes; }

int64_t Program::bound_bytes() const { return impl_->compiled.bound_bytes(); }

std::vector<std::pair<int64_t, std::string>> Program::peak_breakdown(int count) const {
  std::vector<std::pair<int64_t, std::string>> tensors;
  for (const Storage& s : impl_->plan.storages)
    if (s.kind == StorageKind::arena && s.first >= 0 && s.first <= impl_->plan.peak_launch &&
        s.last >= impl_->plan.peak_launch)
      tensors.emplace_back(s.bytes, s.label);
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  if (static_cast<int>(tensors.size()) > count) tensors.resize(std::max(count, 0));
  return tensors;
}

const std::string& Program::precision() const { return impl_->compiled.precision; }

const std::map<std::string, std::string>& Program::choices() const { return impl_->plan.choices; }

const std::vector<PassInfo>& Program::passes() const { return impl_->compiled.passes; }

std::vector<LaunchInfo> Program::launches() const { return describe_launches(impl_->plan); }

std::string Program::explain() const {
  std::string text;
  const std::vector<LaunchInfo> all = launches();
  const auto wave = [&](size_t l) { return impl_->plan.launches[l].wave; };
  for (size_t l = 0; l < all.size(); ++l) {
    const LaunchInfo& launch = all[l];
    text += fmt::format("{}: {}{} -> {} [{}]{}", launch.provider, launch.operation,
                        launch.origin.str().empty() ? "" : " in " + launch.origin.str(), launch.types,
                        launch.kernel, launch.declined.empty() ? "" : " (declined: " + launch.declined + ")");
    if (l > 0 && wave(l) == wave(l - 1) && impl_->plan.launches[l].chain < 0)
      text += " (together with the one before)";
    text += "\n";
  }
  return text;
}

void Program::set_profiling(bool on) {
  impl_->clock = on ? std::make_unique<RunClock>(impl_->launches.size()) : nullptr;
}

std::vector<std::vector<int64_t>> Program::run_times() const {
  return impl_->clock ? impl_->clock->runs() : std::vector<std::vector<int64_t>>{};
}

}  // namespace millrace
