// The constants of graphs that go into one file, and graphs without them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <millrace/array.h>
#include <millrace/graph.h>

#include "model_formats/sized_constants.h"
#include "session/format.h"

namespace millrace::mill {

/// Arrays of all graphs: equal ones are there once.
class Weights {
 public:
  int64_t number_of(const Array& array);
  const std::vector<Array>& arrays() const { return arrays_; }
  /// The one that is there already and equal; else the same.
  Array known(const Array& array) const;

 private:
  /// The number of an array that lies where one of these does: its bytes need not be read again.
  std::optional<int64_t> itself(const Array& array) const;

  std::vector<Array> arrays_;
  std::map<std::pair<uint64_t, uint64_t>, std::vector<int64_t>> by_hash_;
  std::map<const void*, int64_t> by_place_;
};

/// The same graph; constants that are known lie there, not in memory once more.
Graph with_known_constants(const Graph& graph, const Weights& weights);

/// The graph with its large constants as inputs that say which they are. Those of `sized` are made of what is
/// kept of them where the graph runs.
Graph without_constants(const Graph& graph, Weights& weights, const std::vector<SizedConstant>& sized = {});

/// The graph with constants in the place of those inputs for which `constant` gives one, by their numbers.
Graph with_constants(const Graph& graph, const std::function<const Array*(size_t)>& constant);

/// The model's graph, with weights beside it as constants, to be folded and packed.
Graph whole_graph(const SessionModel& model, const Bindings& sizes);

}  // namespace millrace::mill
