// The formats that open_source() knows; one file each.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/source.h"

namespace millrace::data {

/// All formats with columns; their order is that in which a file is tried.
extern const Format recordio_format;
extern const Format tfrecord_format;
extern const Format beton_format;
extern const Format mds_format;

/// A folder of class folders. InputError: no pictures, a class folder without any, pictures outside of class
/// folders.
std::unique_ptr<Source> open_folder(const std::string& path);

/// One tar or several shards, in the order given.
std::unique_ptr<Source> open_tars(const std::string& name, const std::vector<std::string>& paths);
/// True when the file begins with a tar header.
bool is_tar(const std::string& path);

/// IDX pictures with the labels file beside them.
std::unique_ptr<Source> open_idx(const std::string& path);
/// True when the file, unzipped, begins with IDX's magic number.
bool is_idx(const std::string& path);

}  // namespace millrace::data
