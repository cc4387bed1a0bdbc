// From a graph of fixed shapes to a plan: passes, layouts, providers, and what fits into memory.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <millrace/program.h>

#include "base/thread_pool.h"
#include "passes/pass.h"
#include "plan/plan.h"

namespace millrace {

struct Lowered {
  Plan plan;
  std::vector<PassInfo> passes;
  std::shared_ptr<const Graph> lowered;  // as the passes leave it, where that is asked for
  Copies copies;  // kept of parameters, behind the graph's own inputs and outputs; and the donations of all

  /// Bytes of inputs and of outputs that are not donated.
  int64_t argument_bytes() const;
  /// Those, and of constants.
  int64_t bound_bytes() const;
};

/// Lowers for a target in "fp32", "bf16" or "fp16"; what is ready (CompileOptions::ready) without passes, and
/// kernels are timed where nothing similar was. What is measured on the way is measured on the device.
/// `keep`: whether `lowered` is asked for. InputError when the memory that the options allow is too little
/// (naming the least).
Lowered lower(const Graph& graph, const Target& target, const std::string& precision,
              const CompileOptions& options, DeviceContext device, bool keep = false);

/// The precision asked for, as the target computes it. InputError when there is none such.
std::string precision_on(const Target& target, const CompileOptions& options);

}  // namespace millrace
