// Parameters by the parts of the model that they belong to.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace millrace::train {

/// The part of each parameter: its name without the last word ("blocks.0.attn" of "blocks.0.attn.weight"),
/// cut to as many words as make `most` different parts at most, one at least.
std::vector<std::string> model_parts(std::span<const std::string> names, size_t most = 32);

}  // namespace millrace::train
