// Runs graphs through the code generator as one fused node.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include <millrace/array.h>
#include <millrace/graph.h>

#include "base/thread_pool.h"
#include "target/provider.h"

namespace millrace {

struct CodegenRun {
  int threads = 2;
  std::vector<Layout> operand_layouts = {}, result_layouts = {};  // empty: row-major
};

/// `values` (row-major) stored in a layout, and back.
Array to_layout(const Array& values, const Layout& layout);
Array from_layout(const Array& stored, const Layout& layout);

/// A kernel for `body` as a fused node.
std::unique_ptr<Kernel> build_fused(const Graph& body, const CodegenRun& options = {});
/// A kernel for the node that gives a graph's outputs, unfused.
std::unique_ptr<Kernel> build_lone(const Graph& graph, const CodegenRun& options = {});
std::vector<Array> run_kernel(Kernel& kernel, const Graph& body, std::span<const Array> inputs,
                              const CodegenRun& options = {});
/// Both.
std::vector<Array> run_fused(const Graph& body, std::span<const Array> inputs,
                             const CodegenRun& options = {});

/// Random values: floats in [low, high], integers in [0, 5], bool either.
Array random_array(const Type& type, uint64_t seed, double low = -2, double high = 2);

}  // namespace millrace
