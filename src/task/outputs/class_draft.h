// What `millrace init` finds out about classes.
#pragma once

#include <string>
#include <vector>

#include "task/output.h"

namespace millrace::task {

/// Classes that the names of the samples tell (OutputKind::derive).
std::string derive_class(Section& section, const data::Dataset& samples);
/// What is to be cut off the texts of classes (OutputKind::draft).
SectionKeys draft_class(const std::vector<std::string>& classes, const std::vector<std::string>& of_tests);

}  // namespace millrace::task
