// Choices for problems that were never timed.
#pragma once

#include <limits>
#include <map>
#include <optional>
#include <string>

namespace millrace {

/// Whatever the factors are.
inline constexpr double kAnyFactors = std::numeric_limits<double>::infinity();
/// So much alike that what is faster for one is for the other: half as large again.
inline constexpr double kAlike = 1.5;

/// The choice for the recorded problem that is most like this one: the same but for its numbers, which differ
/// by the smallest factors, of which the product is `most` or less. nullopt when there is none such.
std::optional<std::string> nearest_choice(const std::map<std::string, std::string>& choices,
                                          const std::string& problem, double most = kAnyFactors);

}  // namespace millrace
