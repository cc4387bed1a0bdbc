// Whether what is done to a token depends on how long the whole text is.
#pragma once

#include <vector>

#include "optim/token_graph.h"

namespace millrace::optim {

/// The lengths of texts that a model's steps are compared for, all shorter than its longest.
std::vector<int64_t> compared_lengths(int64_t longest);

/// InputError where steps of a model differ that are made of its graphs for a longer and for a shorter text:
/// by a number that is made of the length, or places that are counted from the end. Tables of places may end
/// earlier. `given` as of build_token_step().
void require_same_steps(const TokenGraph& longer, const TokenGraph& shorter, const std::vector<Array>& given);

}  // namespace millrace::optim
