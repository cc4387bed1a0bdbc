#include <algorithm>
#include <cstring>
#include <functional>
#include <list>
#include <mutex>
#include <set>
#include <utility>

#include <millrace/session.h>

#include "base/format.h"
#include "ir/bind.h"
#include "runtime/ready.h"

namespace millrace {
namespace {

/// What one caller runs.
struct Context {
  Program program;
  std::vector<Array> filled;  // of each input: memory for arrays that are filled up, made when first needed
};

/// What there is for one set of sizes.
struct Sized {
  explicit Sized(Bindings which) : sizes(std::move(which)) {}
  const Bindings sizes;
  std::mutex mutex;  // of what follows; held while it is compiled
  std::shared_ptr<const Executable> executable;
  std::vector<Context> idle;  // the one used last is the last one
};

/// Compilations of all sessions come one after the other: they time kernels.
std::mutex& compiling() {
  static std::mutex mutex;
  return mutex;
}

/// The next of 1, 2, 3, 4, 6, 8, 12, 16, 24 …: at most a third is filled up.
int64_t next_size(int64_t size) {
  int64_t power = 1;
  while (power < size) power *= 2;
  return power >= 4 && power / 4 * 3 >= size ? power / 4 * 3 : power;
}

/// InputError where a dimension that may be filled up is not the first one.
void require_first(const SessionModel& model) {
  for (const auto& list : {model.inputs, model.outputs})
    for (const SessionValue& value : list)
      for (int d = 1; d < value.type.shape.rank(); ++d)
        for (const std::string& name : value.type.shape[d].names())
          if (std::find(model.independent.begin(), model.independent.end(), name) != model.independent.end())
            fail<InputError>("'{}' is {}: its dimension '{}' can only be filled up where it is the first",
                             value.name, value.type.str(), name);
}

/// An array of that type where there is no memory yet.
Array unbound(const Type& type) { return Array(type, nullptr, nullptr); }

}  // namespace

struct Session::Impl {
  SessionModel model;
  size_t most;
  std::mutex mutex;                        // of all that follows
  std::list<std::shared_ptr<Sized>> kept;  // the one used last first
  std::map<std::string, std::set<int64_t>> prepared;
  std::map<std::string, std::string> choices;
  int64_t compiled = 0;

  Bindings sizes_of(std::span<const Array> inputs) const {
    if (inputs.size() != model.inputs.size())
      fail<TypeError>("the model takes {} inputs, {} are given", model.inputs.size(), inputs.size());
    Bindings sizes;
    for (size_t i = 0; i < inputs.size(); ++i)
      bind_dimensions(model.inputs[i].name, model.inputs[i].type, inputs[i], sizes);
    return sizes;
  }

  /// The sizes that are run for these.
  Bindings run_as(Bindings sizes) {
    const std::lock_guard lock(mutex);
    for (const std::string& name : model.independent) {
      const auto found = sizes.find(name);
      if (found == sizes.end() || found->second < 1) continue;
      int64_t& size = found->second;
      const int64_t next = next_size(size);
      const std::set<int64_t>& own = prepared[name];
      const auto fits = own.lower_bound(size);
      size = fits == own.end() ? next : std::min(next, *fits);
    }
    return sizes;
  }

  std::shared_ptr<Sized> find(const Bindings& sizes) {
    const std::lock_guard lock(mutex);
    auto at =
        std::find_if(kept.begin(), kept.end(), [&](const auto& sized) { return sized->sizes == sizes; });
    if (at == kept.end()) at = kept.insert(kept.end(), std::make_shared<Sized>(sizes));
    kept.splice(kept.begin(), kept, at);
    // Who still runs one that goes has it until then.
    if (kept.size() > most) kept.pop_back();
    return kept.front();
  }

  /// With sized.mutex held.
  void compile(const std::shared_ptr<Sized>& sized) {
    if (sized->executable) return;
    const std::lock_guard one(compiling());
    try {
      CompileOptions options = model.compile;
      options.bindings = sized->sizes;
      for (const auto& choice : known_choices()) options.choices.insert(choice);
      const Graph graph = model.graph(sized->sizes);
      sized->executable =
          model.compile.ready ? compile_ready(graph, options) : Executable::compile(graph, options);
      const Context& first = sized->idle.emplace_back(make(*sized));
      const std::lock_guard lock(mutex);
      choices.insert(first.program.choices().begin(), first.program.choices().end());
      ++compiled;
    } catch (...) {
      const std::lock_guard lock(mutex);
      kept.remove(sized);  // sizes that cannot be keep no place
      throw;
    }
  }

  std::map<std::string, std::string> known_choices() {
    const std::lock_guard lock(mutex);
    return choices;
  }

  Context make(const Sized& sized) const {
    std::map<int, Array> arrays;
    for (size_t i = 0; i < model.inputs.size(); ++i) {
      const Type& type = model.inputs[i].type;
      arrays[static_cast<int>(i)] = unbound({type.dtype, type.shape.specialise(sized.sizes)});
    }
    for (const Array& weight : model.weights) arrays.emplace(static_cast<int>(arrays.size()), weight);
    return {Program(sized.executable, arrays), std::vector<Array>(model.inputs.size())};
  }

  Context take(const std::shared_ptr<Sized>& sized) {
    {
      const std::lock_guard lock(sized->mutex);
      compile(sized);
      if (!sized->idle.empty()) {
        Context context = std::move(sized->idle.back());
        sized->idle.pop_back();
        return context;
      }
    }
    return make(*sized);
  }

  /// Binds the arrays given; copies those that have to be filled up.
  static void bind(Context& context, std::span<const Array> inputs) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const int at = static_cast<int>(i);
      const Type& type = context.program.input(at).type();
      if (inputs[i].type() == type) {
        context.program.bind_input(at, inputs[i]);
        continue;
      }
      Array& filled = context.filled[i];
      if (filled.empty()) filled = Array(type);
      const auto given = static_cast<size_t>(inputs[i].bytes());
      auto* const to = static_cast<char*>(filled.data());
      std::memcpy(to, std::as_const(inputs[i]).data(), given);
      std::memset(to + given, 0, static_cast<size_t>(filled.bytes()) - given);
      context.program.bind_input(at, filled);
    }
  }

  /// Arrays for the results, without what is filled up: `sizes` were asked for, `run` is run. The program
  /// writes into them where it can.
  std::vector<Array> place_results(Program& program, std::span<const Array> inputs, const Place& place,
                                   const Bindings& sizes, const Bindings& run) const {
    std::vector<Array> all;
    for (size_t i = 0; i < model.outputs.size(); ++i) {
      const int at = static_cast<int>(i);
      const Type whole = program.output(at).type();
      Type type = whole;
      if (type.shape.rank() > 0)
        for (const std::string& name : model.outputs[i].type.shape[0].names())
          if (sizes.at(name) != run.at(name))
            type.shape[0] = type.shape[0].size() / run.at(name) * sizes.at(name);
      Array result = place ? place(at, type) : Array();
      if (result.empty()) result = Array(type);
      if (result.type() != type)
        fail<TypeError>("result '{}' is {}, the array given for it {}", model.outputs[i].name, type.str(),
                        result.type().str());
      const bool direct =
          type == whole && std::none_of(inputs.begin(), inputs.end(),
                                        [&](const Array& input) { return overlap(input, result); });
      if (direct)
        program.bind_output(at, result);
      else if (program.output(at).empty())
        program.bind_output(at, Array(whole));
      all.push_back(std::move(result));
    }
    return all;
  }

  static bool overlap(const Array& a, const Array& b) {
    const auto *const at = static_cast<const char*>(a.data()), *const other =
                                                                   static_cast<const char*>(b.data());
    return std::less<>{}(at, other + b.bytes()) && std::less<>{}(other, at + a.bytes());
  }

  /// Copies the results that were not written where they belong. What is the caller's is let go.
  static void finish(Program& program, std::span<const Array> inputs, std::vector<Array>& results) {
    for (size_t i = 0; i < results.size(); ++i) {
      const int at = static_cast<int>(i);
      if (const Array& whole = program.output(at); whole.shares_memory(results[i]))
        program.bind_output(at, unbound(whole.type()));
      else
        std::memcpy(results[i].data(), whole.data(), static_cast<size_t>(results[i].bytes()));
    }
    for (int i = 0; i < static_cast<int>(inputs.size()); ++i)
      program.bind_input(i, unbound(program.input(i).type()));
  }
};

Session::Session(SessionModel model, const SessionOptions& options) : impl_(std::make_shared<Impl>()) {
  if (!model.graph) fail<InputError>("a session's model lacks its graph");
  require_first(model);
  if (options.executables < 1)
    fail<InputError>("a session cannot keep {} executables: at least 1", options.executables);
  if (!options.precision.empty()) {
    if (model.compile.ready && options.precision != model.compile.precision)
      fail<InputError>("the model was built for {}; it cannot be run in {}: build it for that",
                       model.compile.precision, options.precision);
    model.compile.precision = options.precision;
  }
  impl_->model = std::move(model);
  impl_->most = static_cast<size_t>(options.executables);
}

const std::vector<SessionValue>& Session::inputs() const { return impl_->model.inputs; }
const std::vector<SessionValue>& Session::outputs() const { return impl_->model.outputs; }
const std::vector<std::string>& Session::notes() const { return impl_->model.notes; }
Bindings Session::sizes(std::span<const Array> inputs) const { return impl_->sizes_of(inputs); }

std::vector<Array> Session::run(std::span<const Array> inputs) const { return run(inputs, Place{}); }

std::vector<Array> Session::run(std::span<const Array> inputs, const Place& place) const {
  Impl& impl = *impl_;
  const Bindings sizes = impl.sizes_of(inputs);
  const std::shared_ptr<Sized> sized = impl.find(impl.run_as(sizes));
  Context context = impl.take(sized);
  Impl::bind(context, inputs);
  std::vector<Array> results = impl.place_results(context.program, inputs, place, sizes, sized->sizes);
  context.program.run();
  impl.finish(context.program, inputs, results);
  const std::lock_guard lock(sized->mutex);
  sized->idle.push_back(std::move(context));
  return results;
}

void Session::prepare(const Bindings& sizes) const {
  {
    const std::lock_guard lock(impl_->mutex);
    for (const std::string& name : impl_->model.independent)
      if (const auto found = sizes.find(name); found != sizes.end())
        impl_->prepared[name].insert(found->second);
  }
  const std::shared_ptr<Sized> sized = impl_->find(sizes);
  const std::lock_guard lock(sized->mutex);
  impl_->compile(sized);
}

std::map<std::string, std::string> Session::choices() const { return impl_->known_choices(); }

Session::Counts Session::counts() const {
  std::vector<std::shared_ptr<Sized>> kept;
  Counts counts;
  {
    const std::lock_guard lock(impl_->mutex);
    counts.compiled = impl_->compiled;
    kept.assign(impl_->kept.begin(), impl_->kept.end());
  }
  counts.kept = static_cast<int>(kept.size());
  for (const auto& sized : kept) {
    const std::lock_guard lock(sized->mutex);
    counts.programs += static_cast<int>(sized->idle.size());
  }
  return counts;
}

}  // namespace millrace
