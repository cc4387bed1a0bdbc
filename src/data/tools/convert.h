// From one format to another.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <millrace/dataset.h>
#include <millrace/format.h>

namespace millrace::data {

/// The places of the columns of these names, in their order; all when there are none. InputError names the
/// nearest of a name that is not there.
std::vector<size_t> choose_columns(const Dataset& dataset, const std::vector<std::string>& names);
/// Do classes stand in it by their names, whatever numbers they have? (Folders, of which each is a class.)
bool writes_names(const Format& format);
/// `names`: numbers of classes become the texts that they stand for.
std::vector<Column> columns_at(const Dataset& dataset, const std::vector<size_t>& chosen, bool names = false);

/// Writes every sample, its chosen columns, and finishes. A sample that cannot be read or held ends it with
/// its error: what is there at the end is whole.
void copy_samples(const Dataset& dataset, const std::vector<size_t>& chosen, DatasetWriter& writer,
                  const std::function<void(int64_t done, int64_t total)>& progress = {}, bool names = false);

}  // namespace millrace::data
