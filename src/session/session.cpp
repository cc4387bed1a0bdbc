#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <mutex>
#include <set>
#include <utility>

#include <millrace/session.h>

#include "base/format.h"
#include "base/free_memory.h"
#include "base/size_text.h"
#include "base/suggest.h"
#include "ir/bind.h"
#include "ir/first_along.h"
#include "runtime/lower.h"
#include "session/async_runs.h"
#include "session/executables.h"
#include "session/sizes.h"
#include "session/unchanged_file.h"
#include "target/device.h"

namespace millrace {
namespace {

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

/// Of these, runs that are made now, this one included; for as long as it lives.
class Running {
 public:
  explicit Running(std::atomic<int>& runs) : runs_(runs), count_(++runs) {}
  ~Running() { --runs_; }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  int count() const { return count_; }

 private:
  std::atomic<int>& runs_;
  const int count_;
};

/// Binds the arrays given; copies those that have to be filled up.
void bind(Context& context, std::span<const Array> inputs, const SessionModel& model) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int at = static_cast<int>(i);
    Array& bound = context.program.input(at);
    if (inputs[i].type() == bound.type()) {
      bound = inputs[i];
      continue;
    }
    device_named(model.compile.target).require_readable(inputs[i], model.inputs[i].name);
    if (inputs[i].empty() && inputs[i].type().shape.count() > 0)
      fail<TypeError>("input '{}' is an array without memory", model.inputs[i].name);
    Array& filled = context.filled[i];
    if (filled.empty()) filled = Array(bound.type());
    const auto given = static_cast<size_t>(inputs[i].bytes());
    auto* const to = static_cast<char*>(filled.data());
    std::memcpy(to, std::as_const(inputs[i]).data(), given);
    std::memset(to + given, 0, static_cast<size_t>(filled.bytes()) - given);
    bound = filled;
  }
}

bool overlap(const Array& a, const Array& b) {
  const auto *const at = static_cast<const char*>(a.data()), *const other =
                                                                 static_cast<const char*>(b.data());
  return std::less<>{}(at, other + b.bytes()) && std::less<>{}(other, at + a.bytes());
}

}  // namespace

struct Session::Impl {
  Executables executables;
  const SessionModel& model;
  const int threads;
  std::atomic<int> running{0};
  UnchangedFile file;
  std::shared_ptr<AsyncRuns::Owner> owner;
  /// Inputs of these types have these sizes, and are run as those.
  struct Asked {
    std::vector<Type> types;
    Bindings sizes, run;
  };
  std::mutex mutex;  // of what follows
  std::map<std::string, std::set<int64_t>> prepared;
  std::shared_ptr<const Asked> last;  // of the run before; null: none since something was prepared

  Impl(SessionModel which, const SessionOptions& options)
      : executables(std::move(which), options.executables,
                    options.memory.empty()
                        ? 0
                        : static_cast<int64_t>(parse_bytes("a session's memory", options.memory))),
        model(executables.model()),
        threads(options.threads),
        file(model.require_unchanged),
        owner(std::make_shared<AsyncRuns::Owner>(AsyncRuns::Owner{options.threads})) {}

  Bindings sizes_of(std::span<const Array> inputs) const {
    if (inputs.size() != model.inputs.size())
      fail<TypeError>("the model takes {} inputs, {} are given", model.inputs.size(), inputs.size());
    Bindings sizes;
    for (size_t i = 0; i < inputs.size(); ++i)
      bind_dimensions(model.inputs[i].name, model.inputs[i].type, inputs[i], sizes);
    return sizes;
  }

  /// The sizes that are run for these. With `mutex` held.
  Bindings run_as(Bindings sizes) {
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

  /// Most runs are for the sizes of the one before, and a small network's run takes a microsecond.
  std::shared_ptr<const Asked> ask(std::span<const Array> inputs) {
    const auto is_type = [](const Array& array, const Type& type) { return array.type() == type; };
    {
      const std::lock_guard lock(mutex);
      if (last && std::equal(inputs.begin(), inputs.end(), last->types.begin(), last->types.end(), is_type))
        return last;
    }
    auto asked = std::make_shared<Asked>();
    for (const Array& input : inputs) asked->types.push_back(input.type());
    asked->sizes = sizes_of(inputs);
    const std::lock_guard lock(mutex);
    asked->run = run_as(asked->sizes);
    last = asked;
    return asked;
  }

  /// Arrays for the results, without what is filled up: `sizes` were asked for, `run` is run. The program
  /// writes into them where it can.
  std::vector<Array> place_results(Context& context, std::span<const Array> inputs, const Place& place,
                                   const Bindings& sizes, const Bindings& run) const {
    Program& program = context.program;
    std::vector<Array> all;
    all.reserve(model.outputs.size());
    const bool fills = sizes != run;
    for (int at = 0; at < program.output_count(); ++at) {
      const auto i = static_cast<size_t>(at);
      // One whose size is known behind the run, or such a size.
      if (i >= model.outputs.size() || model.outputs[i].data_axis >= 0) {
        if (program.output(at).empty()) program.bind_output(at, Array(program.output(at).type()));
        if (i < model.outputs.size()) all.emplace_back();
        continue;
      }
      const Type& whole = context.no_outputs[i].type();
      Type cut;
      // What the model says of its outputs may be less than what they are.
      if (fills && whole.shape.rank() > 0 && model.outputs[i].type.shape.rank() > 0)
        for (const std::string& name : model.outputs[i].type.shape[0].names())
          if (const auto asked = sizes.find(name); asked != sizes.end() && asked->second != run.at(name)) {
            if (cut.shape.empty()) cut = whole;
            cut.shape[0] = cut.shape[0].size() / run.at(name) * asked->second;
          }
      const Type& type = cut.shape.empty() ? whole : cut;
      Array result = placed(at, type, place);
      const bool direct =
          cut.shape.empty() && std::none_of(inputs.begin(), inputs.end(),
                                            [&](const Array& input) { return overlap(input, result); });
      context.lent[i] = direct;
      if (direct)
        program.bind_output(at, result);
      else if (program.output(at).empty())
        program.bind_output(at, Array(whole));
      all.push_back(std::move(result));
    }
    return all;
  }

  Array placed(int at, const Type& type, const Place& place) const {
    Array result = place ? place(at, type) : Array();
    if (result.empty()) result = Array(type);
    if (result.type() != type)
      fail<TypeError>("result '{}' is {}, the array given for it {}",
                      model.outputs[static_cast<size_t>(at)].name, type.str(), result.type().str());
    return result;
  }

  /// Copies the results that were not written where they belong, and what counts of those whose size is known
  /// only now.
  void finish(const Program& program, std::vector<Array>& results, const Place& place) const {
    int size_at = static_cast<int>(model.outputs.size());
    for (size_t i = 0; i < results.size(); ++i) {
      const int axis = model.outputs[i].data_axis;
      const Array& whole = program.output(static_cast<int>(i));
      if (axis < 0) {
        if (!whole.shares_memory(results[i]))
          std::memcpy(results[i].data(), whole.data(), static_cast<size_t>(results[i].bytes()));
        continue;
      }
      const int64_t most = whole.shape()[static_cast<size_t>(axis)].size(),
                    size = program.output(size_at++).int_at(0);
      if (size < 0 || size > most)
        fail<InputError>("result '{}' has {} places along axis {}, but there is room for {}",
                         model.outputs[i].name, size, axis, most);
      results[i] = placed(static_cast<int>(i), first_along(whole.type(), axis, size), place);
      copy_first_along(whole, axis, results[i]);
    }
  }

  std::vector<Array> run(std::span<const Array> inputs, const Place& place, const CancelToken& cancel) {
    if (cancel.cancelled()) throw CancelledError("the run was cancelled before it began");
    const std::shared_ptr<const Asked> asked = ask(inputs);
    Executables::Lease lease = executables.take(asked->run);
    Program& program = (*lease).program;
    bind(*lease, inputs, model);
    std::vector<Array> results = place_results(*lease, inputs, place, asked->sizes, asked->run);
    const Running now(running);
    program.set_threads(threads > 0 ? std::max(threads / now.count(), 1) : 0);
    program.run(cancel);
    file.require();
    finish(program, results, place);
    return results;
  }
};

Session::Session(SessionModel model, const SessionOptions& options) {
  if (!model.graph) fail<InputError>("a session's model lacks its graph");
  require_first(model);
  if (options.executables < 0)
    fail<InputError>("a session cannot keep {} executables; 0 stands for as many as take little memory",
                     options.executables);
  if (options.threads < 0)
    fail<InputError>("a session cannot have {} threads; 0 stands for all of them", options.threads);
  if (!options.precision.empty()) {
    if (model.compile.ready && options.precision != model.compile.precision)
      fail<InputError>("the model was built for {}; it cannot be run in {}: build it for that",
                       model.compile.precision, options.precision);
    model.compile.precision = options.precision;
    (void)precision_on(device_named(model.compile.target).target(), model.compile);
  }
  impl_ = std::shared_ptr<Impl>(new Impl(std::move(model), options), [](Impl* impl) {
    delete impl;
    give_back_free_memory();
  });
}

const std::vector<SessionValue>& Session::inputs() const { return impl_->model.inputs; }
const std::vector<SessionValue>& Session::outputs() const { return impl_->model.outputs; }
const std::vector<std::string>& Session::notes() const { return impl_->model.notes; }
Bindings Session::sizes(std::span<const Array> inputs) const { return impl_->sizes_of(inputs); }

std::vector<Array> Session::run(std::span<const Array> inputs, const CancelToken& cancel) const {
  return impl_->run(inputs, {}, cancel);
}

std::vector<Array> Session::run(std::span<const Array> inputs, const Place& place,
                                const CancelToken& cancel) const {
  return impl_->run(inputs, place, cancel);
}

std::future<std::vector<Array>> Session::run_async(std::vector<Array> inputs,
                                                   const CancelToken& cancel) const {
  auto promise = std::make_shared<std::promise<std::vector<Array>>>();
  std::future<std::vector<Array>> future = promise->get_future();
  AsyncRuns::all().add(impl_->owner, [impl = impl_, promise, given = std::move(inputs), cancel]() mutable {
    try {
      std::vector<Array> results = impl->run(given, {}, cancel);
      // Nothing of the run is left when its caller goes on.
      given.clear();
      impl = nullptr;
      promise->set_value(std::move(results));
    } catch (...) {
      given.clear();
      impl = nullptr;
      promise->set_exception(std::current_exception());
    }
  });
  return future;
}

void Session::prepare(const Bindings& sizes) const {
  const std::set<std::string> known = named_dimensions(impl_->model.inputs);
  for (const auto& [name, size] : sizes)
    if (!known.contains(name))
      fail<InputError>("the model has no dimension '{}'{}", name,
                       did_you_mean_or_list(name, std::vector(known.begin(), known.end())));
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->last = nullptr;
    for (const std::string& name : impl_->model.independent)
      if (const auto found = sizes.find(name); found != sizes.end())
        impl_->prepared[name].insert(found->second);
  }
  impl_->executables.prepare(sizes);
}

std::map<std::string, std::string> Session::choices() const { return impl_->executables.choices(); }

Session::Counts Session::counts() const { return impl_->executables.counts(); }

}  // namespace millrace
