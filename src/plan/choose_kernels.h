// Who computes each node of a graph: its provider, and the kernel that this one builds.
#pragma once

#include "plan/plan.h"

namespace millrace {

/// Fills in a plan's launches, one for each node of its graph that is read and computes something, in the
/// order of the graph and without storages yet; and its choices, of problems that more than one provider
/// takes. Of several providers that take a node the one of `options.choices` is taken, or the one that was
/// the fastest on this machine when it was first asked. One nearly as fast is taken instead where its form of
/// the constants is in memory already, and the fastest one's is not: so executables for several sizes have
/// their weights once.
void choose_kernels(Plan& plan, const Target& target, const PlanOptions& options, DeviceContext device);

}  // namespace millrace
