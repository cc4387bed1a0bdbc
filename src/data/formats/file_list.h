// Files that are named one by one as a data set.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <millrace/dataset.h>

namespace millrace::data {

/// Each file, here, on a server or "-", is a sample, its path the __key__; the other column is of that kind
/// (audio, bytes …), called `name`. A file that cannot be read is an IoError when it is asked for. `path`
/// stands for all of them in messages.
std::shared_ptr<const Dataset> file_list(std::vector<std::string> files, const std::string& path,
                                         const Column& content);

}  // namespace millrace::data
