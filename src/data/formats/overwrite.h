// What copies data must not destroy other data.
#pragma once

#include <filesystem>
#include <span>

#include <millrace/dataset.h>

namespace millrace::data {

/// Before files are written: InputError when one of them is a file that `source` is read from, whatever it is
/// called there (by device and inode), and, unless `force`, when one is there already. What is no file (a
/// device, a pipe, a folder) is the writer's business.
void require_free(const Dataset& source, std::span<const std::filesystem::path> outputs, bool force);

}  // namespace millrace::data
