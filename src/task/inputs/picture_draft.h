// What a recipe for a data set of pictures could say.
#pragma once

#include <string>
#include <vector>

#include <millrace/dataset.h>

namespace millrace::task {

/// As InputKind::draft.
std::string draft_pictures(const data::Dataset& samples, const std::vector<std::string>& columns);

}  // namespace millrace::task
