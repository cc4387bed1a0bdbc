#include "session/executables.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "base/free_memory.h"
#include "base/size_text.h"
#include "session/sizes.h"

namespace millrace {

std::mutex& compiling() {
  static std::mutex mutex;
  return mutex;
}

namespace {

/// An array of that type where there is no memory yet.
Array unbound(const Type& type) { return Array(type, nullptr, nullptr); }

void add_to(std::map<const void*, int64_t>& memory, const std::vector<Array>& arrays) {
  for (const Array& array : arrays) memory[array.data()] = array.bytes();
}

int64_t sum_of(const std::map<const void*, int64_t>& memory) {
  int64_t bytes = 0;
  for (const auto& [address, count] : memory) bytes += count;
  return bytes;
}

/// InputError unless there are as many outputs as there should be, with the sizes that depend on data.
void require_outputs(const Graph& graph, const std::vector<SessionValue>& outputs) {
  size_t next = outputs.size();
  const auto type_at = [&](size_t i) -> const Type& {
    if (i >= graph.outputs().size())
      fail<InputError>("the model's graph has {} outputs; some of the model's are not there", i);
    return graph.type(graph.outputs()[i]);
  };
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].data_axis >= type_at(i).shape.rank())
      fail<InputError>("'{}' is {} and has no axis {}", outputs[i].name, type_at(i).str(),
                       outputs[i].data_axis);
    if (outputs[i].data_axis >= 0 && type_at(next++) != Type{i64, {}})
      fail<InputError>("how large '{}' is, is {}", outputs[i].name, type_at(next - 1).str());
  }
  if (graph.outputs().size() != next)
    fail<InputError>("the model's graph has {} outputs, not {}", graph.outputs().size(), next);
}

}  // namespace

Executables::Executables(SessionModel model, int most, int64_t memory)
    : model_(std::move(model)),
      most_(static_cast<size_t>(most)),
      memory_(memory),
      arenas_(std::make_shared<Arenas>(memory == 0)) {
  int64_t weights = model_.constant_bytes;
  for (const Array& array : model_.weights) weights += array.bytes();
  if (memory_ > 0 && weights > memory_)
    fail<InputError>("the model's weights are {}, but the session is allowed {}: allow more",
                     memory_text(weights), memory_text(memory_));
}

Executables::Lease::Lease(Executables& from, std::shared_ptr<Sized> sized, std::unique_ptr<Context> context)
    : from_(from), sized_(std::move(sized)), context_(std::move(context)) {}

Executables::Lease::~Lease() { from_.give_back(std::move(sized_), std::move(context_)); }

std::shared_ptr<Executables::Sized> Executables::find(const Bindings& sizes) {
  const std::lock_guard lock(mutex_);
  auto at =
      std::find_if(kept_.begin(), kept_.end(), [&](const auto& sized) { return sized->sizes == sizes; });
  if (at == kept_.end()) {
    at = kept_.insert(kept_.end(), std::make_shared<Sized>(sizes));
    std::erase_if(live_, [](const auto& sized) { return sized.expired(); });
    live_.push_back(*at);
  } else if (at == kept_.begin()) {
    return *at;  // nothing goes, and nobody need be told
  }
  kept_.splice(kept_.begin(), kept_, at);
  // Who still runs one that goes has it until then.
  if (keeps_too_many()) {
    kept_.pop_back();
    drop_arenas();
  }
  freed_.notify_all();
  return kept_.front();
}

/// With mutex_ held.
bool Executables::keeps_too_many() const {
  if (most_ > 0) return kept_.size() > most_;
  constexpr size_t few = 8;
  constexpr int64_t little = 256 << 20;  // bytes
  int64_t bytes = 0;
  for (const auto& sized : kept_) bytes += sized->plan_bytes;
  return kept_.size() > few && bytes > little;
}

/// Those that no set of sizes needs which is still kept. With mutex_ held.
void Executables::drop_arenas() {
  int64_t largest = 0;
  for (const auto& sized : kept_) largest = std::max(largest, sized->arena_bytes);
  arenas_->drop_larger(largest);
}

/// All that there is in memory, with `memory` in addition. With mutex_ held.
int64_t Executables::live_bytes(Memory memory) const {
  add_to(memory, model_.weights);
  int64_t programs = 0;
  for (const auto& each : live_)
    if (const std::shared_ptr<Sized> sized = each.lock()) {
      memory.insert(sized->constants.begin(), sized->constants.end());
      programs += sized->programs * sized->program_bytes + sized->plan_bytes;
    }
  return sum_of(memory) + programs + arenas_->bytes();
}

void Executables::refuse(const Sized& sized, int64_t constants, int64_t plan, int64_t program) const {
  std::string fits = fmt::format("allow {}", memory_text(constants + plan + program));
  for (const std::string& name : model_.independent)
    if (const auto found = sized.sizes.find(name); found != sized.sizes.end() && found->second > 1) {
      const int64_t rows = (memory_ - constants - plan) * found->second / std::max<int64_t>(program, 1);
      int64_t step = 1;  // others are filled up to these
      while (next_size(step + 1) <= rows) step = next_size(step + 1);
      if (rows >= 1) fits += fmt::format(", or let {} be {} or less", name, step);
    }
  fail<InputError>("{} needs {} ({} for weights, {} for a run), but the session is allowed {}: {}",
                   sizes_words(sized.sizes), memory_text(constants + plan + program), memory_text(constants),
                   memory_text(plan + program), memory_text(memory_), fits);
}

/// Makes room for an executable and one program of it.
void Executables::admit(const std::shared_ptr<Sized>& sized, const Executable& executable) {
  Memory constants;
  add_to(constants, executable.constants());
  Memory own = constants, weights;
  add_to(own, model_.weights);
  add_to(weights, model_.weights);  // which are inputs of the programs
  const int64_t own_bytes = sum_of(own), program = executable.program_bytes() - sum_of(weights) -
                                                   (arenas_->in_turns() ? executable.arena_bytes() : 0);
  const int64_t plan = executable.plan_bytes();
  std::vector<std::shared_ptr<Sized>> dropped;  // outlive the lock
  std::unique_lock lock(mutex_);
  while (memory_ > 0 && live_bytes(constants) + plan + program > memory_) {
    if (own_bytes + plan + program > memory_) refuse(*sized, own_bytes, plan, program);
    // One that is yet to be compiled has nothing to give.
    const auto oldest = std::find_if(kept_.rbegin(), kept_.rend(),
                                     [&](const auto& each) { return each != sized && each->programs > 0; });
    if (oldest != kept_.rend()) {
      dropped.push_back(*oldest);
      kept_.erase(std::next(oldest).base());
      lock.unlock();
      dropped.clear();
      give_back_free_memory();
      lock.lock();
      continue;
    }
    freed_.wait(lock);
  }
  sized->constants = std::move(constants);
  sized->program_bytes = program;
  sized->arena_bytes = executable.arena_bytes();
  sized->plan_bytes = plan;
  sized->programs = 1;
  // Others may have pushed it out meanwhile.
  if (std::find(kept_.begin(), kept_.end(), sized) == kept_.end()) kept_.push_front(sized);
  while (keeps_too_many()) {
    dropped.push_back(kept_.back());
    kept_.pop_back();
    drop_arenas();
  }
}

/// Whether there may be one more program.
bool Executables::admit_program(Sized& sized) {
  const std::lock_guard lock(mutex_);
  if (memory_ > 0 && sized.programs > 0 && live_bytes({}) + sized.program_bytes > memory_) return false;
  ++sized.programs;
  return true;
}

/// With sized.mutex held.
void Executables::compile(const std::shared_ptr<Sized>& sized) {
  if (sized->executable) return;
  const std::lock_guard one(compiling());
  try {
    CompileOptions options = model_.compile;
    options.bindings = sized->sizes;
    for (const auto& choice : choices()) options.choices.insert(choice);
    std::shared_ptr<const Executable> executable = [&] {
      const Graph graph = model_.graph(sized->sizes);
      if (const size_t wanted = model_.inputs.size() + model_.weights.size(); graph.inputs().size() != wanted)
        fail<InputError>("the model's graph has {} inputs, and its inputs and weights are {}",
                         graph.inputs().size(), wanted);
      require_outputs(graph, model_.outputs);
      return Executable::compile(graph, options);
    }();
    // What importing, folding and packing took, and the graph with its constants.
    give_back_free_memory();
    admit(sized, *executable);
    sized->executable = std::move(executable);
    const Context& first = *sized->idle.emplace_back(make(*sized));
    // What was packed of other bytes than the model had at first goes now, before anyone finds it.
    if (model_.require_unchanged) model_.require_unchanged();
    const std::lock_guard lock(mutex_);
    // What it keeps room for, whoever runs it: results that are as large as the data say.
    for (size_t o = 0; o < model_.outputs.size(); ++o)
      if (model_.outputs[o].data_axis >= 0) sized->plan_bytes += first.no_outputs[o].bytes();
    choices_.insert(first.program.choices().begin(), first.program.choices().end());
    ++compiled_;
  } catch (...) {
    sized->idle.clear();
    sized->executable = nullptr;
    const std::lock_guard lock(mutex_);
    sized->programs = 0;
    sized->plan_bytes = 0;
    sized->constants.clear();
    kept_.remove(sized);  // sizes that cannot be keep no place
    freed_.notify_all();
    throw;
  }
}

std::unique_ptr<Context> Executables::make(const Sized& sized) const {
  std::map<int, Array> arrays;
  for (size_t i = 0; i < model_.inputs.size(); ++i) {
    const Type& type = model_.inputs[i].type;
    arrays[static_cast<int>(i)] = unbound({type.dtype, type.shape.specialise(sized.sizes)});
  }
  for (const Array& weight : model_.weights) arrays.emplace(static_cast<int>(arrays.size()), weight);
  auto context = std::make_unique<Context>(Context{Program(sized.executable, arrays, nullptr, arenas_),
                                                   std::vector<Array>(model_.inputs.size()),
                                                   std::vector<char>(model_.outputs.size(), 0),
                                                   {},
                                                   {}});
  for (size_t i = 0; i < model_.inputs.size(); ++i)
    context->no_inputs.push_back(unbound(context->program.input(static_cast<int>(i)).type()));
  for (size_t o = 0; o < model_.outputs.size(); ++o) {
    const int at = static_cast<int>(o);
    context->no_outputs.push_back(unbound(context->program.output(at).type()));
  }
  return context;
}

Executables::Lease Executables::take(const Bindings& sizes) {
  std::shared_ptr<Sized> sized = find(sizes);
  std::unique_lock lock(sized->mutex);
  compile(sized);
  while (sized->idle.empty() && !admit_program(*sized)) sized->freed.wait(lock);
  if (!sized->idle.empty()) {
    std::unique_ptr<Context> context = std::move(sized->idle.back());
    sized->idle.pop_back();
    lock.unlock();
    return {*this, std::move(sized), std::move(context)};
  }
  lock.unlock();
  try {
    return {*this, sized, make(*sized)};
  } catch (...) {
    {
      const std::lock_guard all(mutex_);
      --sized->programs;
    }
    sized->freed.notify_all();
    let_go(std::move(sized));
    throw;
  }
}

void Executables::give_back(std::shared_ptr<Sized> sized, std::unique_ptr<Context> context) {
  // What waits for the next caller must not keep this one's arrays alive.
  Program& program = context->program;
  for (size_t i = 0; i < context->no_inputs.size(); ++i)
    program.input(static_cast<int>(i)) = context->no_inputs[i];
  for (size_t o = 0; o < context->lent.size(); ++o)
    if (std::exchange(context->lent[o], 0)) program.bind_output(static_cast<int>(o), context->no_outputs[o]);
  {
    const std::lock_guard lock(sized->mutex);
    sized->idle.push_back(std::move(context));
  }
  sized->freed.notify_one();
  let_go(std::move(sized));
}

/// Who looks for memory either sees that it is gone, or waits already.
void Executables::let_go(std::shared_ptr<Sized> sized) {
  sized = nullptr;
  if (memory_ == 0) return;
  const std::lock_guard lock(mutex_);
  freed_.notify_all();
}

void Executables::prepare(const Bindings& sizes) {
  std::shared_ptr<Sized> sized = find(sizes);
  {
    const std::lock_guard lock(sized->mutex);
    compile(sized);
  }
  let_go(std::move(sized));
}

std::map<std::string, std::string> Executables::choices() const {
  const std::lock_guard lock(mutex_);
  return choices_;
}

Session::Counts Executables::counts() {
  std::vector<std::shared_ptr<Sized>> kept;
  Session::Counts counts;
  {
    const std::lock_guard lock(mutex_);
    counts.compiled = compiled_;
    kept.assign(kept_.begin(), kept_.end());
    Memory constants;
    add_to(constants, model_.weights);
    for (const auto& sized : kept) constants.insert(sized->constants.begin(), sized->constants.end());
    counts.weights = sum_of(constants);
    counts.bytes = live_bytes({});
  }
  counts.kept = static_cast<int>(kept.size());
  for (const auto& sized : kept) {
    const std::lock_guard lock(sized->mutex);
    counts.programs += static_cast<int>(sized->idle.size());
  }
  while (!kept.empty()) {
    let_go(std::move(kept.back()));
    kept.pop_back();
  }
  return counts;
}

}  // namespace millrace
