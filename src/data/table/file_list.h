// Files that are named one by one as a data set, and a part of a data set as one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/table/dataset.h"

namespace millrace::data {

/// Each file is a sample, its path the __key__; the other column is of that kind (audio, bytes …), called `name`. A file that cannot
/// be read is an IoError when it is asked for. `path` stands for all of them in messages.
std::shared_ptr<const Dataset> file_list(std::vector<std::string> files, const std::string& path,
                                         const Column& content);

/// Samples `first` to `first` + `count` - 1 of a data set, 0 ≤ first ≤ first + count ≤ dataset->count().
std::shared_ptr<const Dataset> slice(std::shared_ptr<const Dataset> dataset, int64_t first, int64_t count);

}  // namespace millrace::data
