// What kinds of inputs share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <millrace/dataset.h>

#include "base/contains.h"
#include "base/format.h"
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
    if (column.kind == kind && !contains(taken, column.name)) names.push_back(column.name);
  return names;
}

}  // namespace millrace::task
