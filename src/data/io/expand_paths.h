// Names of several files by one pattern.
#pragma once

#include <string>
#include <vector>

namespace millrace::data {

/// Expands "{000..007}", "{a,b}" and the wildcards *, ? and [] to file names in order. A pattern that matches
/// nothing is an InputError; a path without any comes back as it is.
std::vector<std::string> expand_paths(const std::string& pattern);

}  // namespace millrace::data
