#include "trace/compiled_segment.h"

#include <list>
#include <unordered_map>

namespace millrace::trace {
namespace {

/// The executables used last, by key.
struct Cache {
  using Entry = std::pair<std::string, std::shared_ptr<CompiledSegment>>;
  std::mutex mutex;
  std::list<Entry> entries;  // most recent first
  std::unordered_map<std::string_view, std::list<Entry>::iterator> index;
  int64_t compiled = 0;
};

Cache& cache() {
  static Cache instance;
  return instance;
}

/// Inputs are bound at each run.
CompileOptions options_for(const Graph& graph, const std::string& target) {
  CompileOptions options;
  options.target = target;
  for (size_t i = 0; i < graph.inputs().size(); ++i)
    options.inputs[static_cast<int>(i)] = Array(graph.type(graph.inputs()[i]), nullptr, nullptr);
  return options;
}

}  // namespace

CompiledSegment::CompiledSegment(const Graph& graph, const std::string& target)
    : program_(Program::compile(graph, options_for(graph, target))) {}

std::vector<Array> CompiledSegment::run(std::span<const Array> inputs) {
  const std::scoped_lock lock(mutex_);
  for (size_t i = 0; i < inputs.size(); ++i) program_.bind_input(static_cast<int>(i), inputs[i]);
  program_.run();
  std::vector<Array> results;
  for (int i = 0; i < program_.output_count(); ++i) results.push_back(program_.output(i).clone());
  // The cache must not keep the caller's arrays alive.
  for (size_t i = 0; i < inputs.size(); ++i)
    program_.bind_input(static_cast<int>(i), Array(inputs[i].type(), nullptr, nullptr));
  return results;
}

std::shared_ptr<CompiledSegment> find_compiled(const Linear& linear, std::span<const Slot> outputs,
                                               const std::string& target) {
  const std::string key = target + "\n" + structure(linear, outputs);
  Cache& c = cache();
  {
    const std::scoped_lock lock(c.mutex);
    if (const auto it = c.index.find(key); it != c.index.end()) {
      c.entries.splice(c.entries.begin(), c.entries, it->second);
      return it->second->second;
    }
  }
  Graph graph;
  const std::map<Slot, Value> values = append(graph, linear);
  std::vector<Value> results;
  for (const Slot& slot : outputs) results.push_back(values.at(slot));
  graph.set_outputs(std::move(results));
  auto made = std::make_shared<CompiledSegment>(graph, target);
  const std::scoped_lock lock(c.mutex);
  ++c.compiled;
  if (c.index.contains(key)) return made;  // another thread was faster
  c.entries.emplace_front(key, made);
  c.index[c.entries.front().first] = c.entries.begin();
  while (c.entries.size() > executable_cache_capacity) {
    c.index.erase(c.entries.back().first);
    c.entries.pop_back();
  }
  return made;
}

CacheCounts executable_cache_counts() {
  Cache& c = cache();
  const std::scoped_lock lock(c.mutex);
  return {c.entries.size(), c.compiled};
}

}  // namespace millrace::trace
