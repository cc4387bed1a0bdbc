// The kernels of control flow: a plan of the body, replayed for every step within one launch.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "target/provider.h"

namespace millrace {

/// Builds the kernel of a loop, or of a cond (a plan for each branch, of which one is run), whose body the
/// passes have lowered. Where the rows of the carries (dimension 0) do not touch each other, the rows are cut
/// into parts that depend on the problem only, and each part runs through all steps by itself: the threads
/// need not wait for each other, and the values of a part stay in a core's cache. Where they do, the body's
/// kernels run one after the other on all threads.
std::unique_ptr<Kernel> build_control_flow(const KernelRequest& request, const Target& target,
                                           DeviceContext device);

/// The body for `to` instead of `from` rows (the size of dimension 0 of the inputs with row_inputs[k] and of
/// all outputs); nullopt when a result row may depend on other rows, or when it cannot be told.
std::optional<Graph> with_rows(const Graph& body, const std::vector<char>& row_inputs, int64_t from,
                               int64_t to);

}  // namespace millrace
