// Constants of a plan: whom they belong to, and which of them nobody needs.
#pragma once

#include <vector>

#include "plan/plan.h"

namespace millrace {

/// The same graph without what no output needs, and its constants in memory once, whichever graphs have them
/// (shared_constant()).
/// `given`: a graph whose constants others may write to; null: nobody writes to any.
Graph share_constants(const Graph& graph, const Graph* given = nullptr);

/// Lets go of constants that all launches have in a form of their own. Their values lack memory then.
void release_packed_constants(Plan& plan);

/// What is in memory for a plan besides its arena: constants, and what kernels made of them. No memory is
/// there twice.
std::vector<Array> constants_of(const Plan& plan);

}  // namespace millrace
