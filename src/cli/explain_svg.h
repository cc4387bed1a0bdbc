// A picture of a program's launches.
#pragma once

#include <string>
#include <vector>

#include <millrace/program.h>

namespace millrace::cli {

/// The launches from top to bottom, coloured by phase, with a curve from each to those that read its results.
std::string launches_svg(const std::vector<LaunchInfo>& launches, const std::string& title);

}  // namespace millrace::cli
