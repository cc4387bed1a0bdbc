// Passes: functions from graph to graph, which compiling a program runs one after the other.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/graph.h>

namespace millrace {

// Of the library: the back end that is compiled for, and what is kept from run to run.
struct Target;
struct Copies;

/// One of two forms of a problem: a graph of its own, and the word that a choice of it is recorded by.
struct Form {
  std::string name;
  Graph graph;
};

/// What a pass is told.
struct PassContext {
  const Target& target;
  std::string precision;  // "fp32", "bf16" or "fp16"
  /// Evaluates a node of constant operands (the reference back end, handed in).
  std::function<std::vector<Array>(const Graph& graph, const Node& node, std::span<const Array> operands)>
      evaluate;
  /// Only rules that keep results bit for bit.
  bool exact = false;
  /// Rules and passes that are switched off by name; run_passes() fills it in.
  std::vector<std::string> disabled = {};
  /// How many bytes of activations the backward pass computes again instead of finding them in memory.
  int64_t drop_bytes = 0;
  /// Where the step's donations are, and what `keep-copies` makes of them; null: nothing is kept.
  Copies* copies = nullptr;
  /// Of two forms of a problem: whether the second runs faster. Measured once for each problem. Empty:
  /// nothing can be measured.
  std::function<bool(const std::string& problem, const Form& first, const Form& second)> faster = {};
  /// Whether the graph is the body of a loop.
  bool in_loop = false;
};

/// A value that a step needs of one of its donated inputs alone, such as a parameter in bf16.
struct CopyInfo {
  std::string parameter;  // the input
  Type type;
  Origin origin;        // of what reads it
  std::string why_not;  // made in every run, because …; empty: the update writes it beside the parameter
};

/// One stage of a compilation.
struct PassInfo {
  std::string name;  // "fuse"; after the graph passes "layout" and "plan" (providers, kernels, memory)
  double seconds = 0;
  int nodes = 0;  // of the graph after it
};

/// A pass over graphs whose shapes are all known. It is also handed the bodies of loops.
struct Pass {
  std::string_view name, doc = {};  // their text must stay
  /// When it runs. The library's have 10, 20 …, in the order that Program::passes() gives: composites are
  /// whole until 30 ("inline"), constants are folded at 60, precision is decided at 80, and from 220 on
  /// ("fuse") operators stand in groups.
  int place = 0;
  Graph (*run)(const Graph& graph, const PassContext& context) = nullptr;
};

/// Adds a pass to those of the library; programs that were compiled before did without. What it
/// gives must have the inputs and outputs that it was given. MILLRACE_DISABLE=name
/// switches it off. InputError when its name is taken, or `doc` or `run` is missing.
const Pass& register_pass(const Pass& pass);

}  // namespace millrace
