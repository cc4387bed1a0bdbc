// Files that are samples themselves (pictures, sounds), as users name them to be predicted.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/dataset.h>

namespace millrace::task {

/// What an input takes as its own.
struct OwnFiles {
  data::ColumnKind kind;
  const char* column;  // the usual name
  bool (*is_name)(std::string_view name);
};

/// Is it named as one, or does it begin as one?
bool is_own_file(const std::string& path, const OwnFiles& own);

/// As Input::paths(): what a pattern matches, where files of the input's own or folders are among it; the
/// lines of a text file, or of "-", where one of the first names a file that is there, from here or from
/// beside the list, or all are names of such files. Bytes 0 may stand for line ends (find -print0).
std::vector<std::string> paths_of(const std::string& argument, const OwnFiles& own);

/// As Input::open(): files of the input's own as one data set with a column of that name (or the usual one)
/// beside their names; else the data set that lies there.
std::shared_ptr<const data::Dataset> files_or_dataset(const std::vector<std::string>& paths,
                                                      const std::string& column, const OwnFiles& own);

}  // namespace millrace::task
