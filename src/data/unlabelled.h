// Pictures without classes, for what only looks at pictures.
#pragma once

#include <memory>

#include "data/source.h"

namespace millrace::data {

/// All picture files of a tar, wherever they lie in it; they are of one class without a name. InputError when there are none
/// or the tar is damaged.
std::unique_ptr<Source> open_unlabelled_tar(const std::string& path);

}  // namespace millrace::data
