#include "trace/compiled_segment.h"

#include <list>
#include <mutex>
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

std::shared_ptr<CompiledSegment> cached_compiled(const std::string& key) {
  Cache& c = cache();
  const std::scoped_lock lock(c.mutex);
  const auto it = c.index.find(key);
  if (it == c.index.end()) return nullptr;
  c.entries.splice(c.entries.begin(), c.entries, it->second);
  return it->second->second;
}

void cache_compiled(const std::string& key, std::shared_ptr<CompiledSegment> executable) {
  Cache& c = cache();
  const std::scoped_lock lock(c.mutex);
  ++c.compiled;
  if (c.index.contains(key)) return;  // another thread was faster
  c.entries.emplace_front(key, std::move(executable));
  c.index[c.entries.front().first] = c.entries.begin();
  while (c.entries.size() > executable_cache_capacity) {
    c.index.erase(c.entries.back().first);
    c.entries.pop_back();
  }
}

}  // namespace

CompiledSegment::CompiledSegment(const Graph& graph, const std::string& target)
    : program_(Program::compile(graph, options_for(graph, target))) {}

std::vector<Array> CompiledSegment::run(std::span<const Array> inputs) {
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
  if (auto found = cached_compiled(key)) return found;
  Graph graph;
  const std::map<Slot, Value> values = append(graph, linear);
  std::vector<Value> results;
  for (const Slot& slot : outputs) results.push_back(values.at(slot));
  graph.set_outputs(std::move(results));
  auto made = std::make_shared<CompiledSegment>(graph, target);
  cache_compiled(key, made);
  return made;
}

CacheCounts executable_cache_counts() {
  Cache& c = cache();
  const std::scoped_lock lock(c.mutex);
  return {c.entries.size(), c.compiled};
}

}  // namespace millrace::trace
