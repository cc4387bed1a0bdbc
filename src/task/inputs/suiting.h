// What kinds of inputs share.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/dataset.h>

#include "base/format.h"
#include "data/formats/file_list.h"
#include "data/formats/open_dataset.h"
#include "data/io/expand_paths.h"
#include "nn/models/architecture.h"

namespace millrace::task {

/// The architectures that take this ("picture", "table"), `first` before the others.
inline std::vector<std::string> suiting_architectures(std::string_view takes, const std::string& first) {
  std::vector<std::string> names = {first};
  for (const nn::Architecture* each : nn::architectures().all())
    if (each->takes == takes && each->name != first) names.push_back(each->name);
  return names;
}

/// The columns of one kind that no other input or output has taken.
inline std::vector<std::string> free_columns(const data::Dataset& samples, data::ColumnKind kind,
                                             const std::vector<std::string>& taken) {
  std::vector<std::string> names;
  for (const data::Column& column : samples.columns())
    if (column.kind == kind && std::find(taken.begin(), taken.end(), column.name) == taken.end())
      names.push_back(column.name);
  return names;
}

/// Files of the input's own kind, named one by one or by patterns, as one data set with a column of that name
/// (or the usual one) beside their names; else the data set that lies there.
inline std::shared_ptr<const data::Dataset> files_or_dataset(const std::vector<std::string>& paths,
                                                             bool (*is_own)(const std::string&),
                                                             const std::string& column,
                                                             const data::Column& usual) {
  if (!std::all_of(paths.begin(), paths.end(), is_own)) {
    if (paths.size() != 1) fail<InternalError>("{} sources where one is opened", paths.size());
    return data::open_dataset(paths[0]);
  }
  std::vector<std::string> files;
  for (const std::string& path : paths)
    for (std::string& file : data::expand_paths(path)) files.push_back(std::move(file));
  return data::file_list(std::move(files), paths[0], {column.empty() ? usual.name : column, usual.kind});
}

}  // namespace millrace::task
