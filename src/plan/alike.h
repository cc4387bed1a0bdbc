// Problems that are so much alike that one choice is made for all of them.
#pragma once

#include <string>
#include <string_view>

namespace millrace {

/// A problem with the sizes in its types, from 16 on, rounded up to steps of a third: what is faster for one
/// is for the others. Which of them was timed first decides; what they are called does not depend on that.
std::string alike_problem(std::string_view problem);

}  // namespace millrace
