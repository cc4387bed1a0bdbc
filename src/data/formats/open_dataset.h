// Data sets by their names: open_dataset() and what it looks for.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <millrace/dataset.h>

namespace millrace::data {

/// open_dataset() for files that are known by name; `path` is what the user wrote.
std::unique_ptr<Dataset> open_dataset(const std::string& path, const std::vector<std::string>& files,
                                      const OpenOptions& options = {});
/// The tars in a folder, in the order of their names; empty when `path` is no folder or has none.
std::vector<std::string> tars_in(const std::string& path);

}  // namespace millrace::data
