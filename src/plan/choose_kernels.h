// Who computes each node of a graph: its provider, and the kernel that this one builds.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace millrace {

struct ChosenKernels {
  std::vector<PlannedLaunch> launches;         // in the order of the graph; without storages yet
  std::map<std::string, std::string> choices;  // of problems that more than one provider takes
};

/// For each node that is read and computes something. Of several providers that take a node the one of
/// `options.choices` is taken, or the one that was the fastest on this machine when it was first asked. One
/// nearly as fast is taken instead where its form of the constants is in memory already, and the fastest
/// one's is not: so executables for several sizes have their weights once.
ChosenKernels choose_kernels(const LaidOutGraph& source, const Target& target, const PlanOptions& options,
                             DeviceContext device);

}  // namespace millrace
