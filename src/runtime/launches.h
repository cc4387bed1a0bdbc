// What the launches of a plan are, and what they ask of a machine.
#pragma once

#include <vector>

#include <millrace/program.h>

#include "plan/plan.h"

namespace millrace {

std::vector<LaunchInfo> describe_launches(const Plan& plan);

}  // namespace millrace
