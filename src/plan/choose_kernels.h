// Who computes each node of a graph: its provider, and the kernel that this one builds.
#pragma once

#include <memory>

#include "plan/plan.h"

namespace millrace {

/// Fills in a plan's launches, one for each node of its graph that is read and computes something, in the
/// order of the graph and without storages yet; and its choices, of problems that more than one provider
/// takes. Of several providers that take a node the one of `options.choices` is taken, or the one that was
/// the fastest on this machine when it was first asked. One nearly as fast is taken instead where its form of
/// the constants is in memory already, and the fastest one's is not: so executables for several sizes have
/// their weights once.
void choose_kernels(Plan& plan, const Target& target, const PlanOptions& options, DeviceContext device);

/// The kernel of a loop (loop.cpp): the plan of its body, replayed for every step within one launch; or of a
/// cond (a plan for each branch, of which one is run), whose body the passes have lowered. Where the rows of
/// the carries (dimension 0) do not touch each other, the rows are cut into parts that depend on the problem
/// only, and each part runs through all steps by itself: the threads need not wait for each other, and the
/// values of a part stay in a core's cache. Where they do, the body's kernels run one after the other on all
/// threads.
std::unique_ptr<Kernel> build_control_flow(const KernelRequest& request, const Target& target,
                                           DeviceContext device);

}  // namespace millrace
