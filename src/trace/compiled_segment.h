// Compiled graphs of lazy tensors, kept by structure.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <millrace/graph.h>
#include <millrace/program.h>

namespace millrace::trace {

/// A compiled graph that takes and returns arrays.
class CompiledSegment {
 public:
  CompiledSegment(const Graph& graph, const std::string& target);
  /// The results are the caller's: the next run does not touch them.
  std::vector<Array> run(std::span<const Array> inputs);

 private:
  Program program_;
};

/// The executable for a structure text (trace/linearise.h) and target, compiled by `make` when it is not in
/// the cache. The cache keeps the `executable_cache_capacity` used last.
template <typename Make>
std::shared_ptr<CompiledSegment> find_compiled(const std::string& structure, const std::string& target,
                                               Make make);

inline constexpr size_t executable_cache_capacity = 256;
/// How many executables the cache holds, and how many were ever compiled.
struct CacheCounts {
  size_t size = 0;
  int64_t compiled = 0;
};
CacheCounts executable_cache_counts();

std::shared_ptr<CompiledSegment> cached_compiled(const std::string& key);
void cache_compiled(const std::string& key, std::shared_ptr<CompiledSegment> executable);

template <typename Make>
std::shared_ptr<CompiledSegment> find_compiled(const std::string& structure, const std::string& target,
                                               Make make) {
  const std::string key = target + "\n" + structure;
  if (auto found = cached_compiled(key)) return found;
  auto made = std::make_shared<CompiledSegment>(make(), target);
  cache_compiled(key, made);
  return made;
}

}  // namespace millrace::trace
