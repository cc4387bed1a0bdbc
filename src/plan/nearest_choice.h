// Choices for problems that were never timed.
#pragma once

#include <map>
#include <optional>
#include <string>

namespace millrace {

/// The choice for the recorded problem that is most like this one: the same but for its numbers, which differ
/// by the smallest factors. nullopt when none is the same but for its numbers.
std::optional<std::string> nearest_choice(const std::map<std::string, std::string>& choices,
                                          const std::string& problem);

}  // namespace millrace
