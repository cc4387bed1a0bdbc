// Data sets by their names.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/table/dataset.h"

namespace millrace::data {

/// The file that stands for a data set: index.json of a folder that has one, else `path` itself.
std::string data_file(const std::string& path);

struct OpenOptions {
  /// Index sidecars are used where they fit (index.h).
  bool use_indices = true;
  /// CSV: whether the first line has the names of the columns; by default it is found from the content.
  std::optional<bool> header = std::nullopt;
  /// CSV: columns that hold texts, whatever their values look like ("007").
  std::vector<std::string> texts = {};
};

/// Opens what `path` names; the format is found from the content:
///  - a folder with a folder of files for each class; folders above (train/, test/) are looked through;
///  - tars: of such folders, or WebDataset shards; several by "train-{000..007}.tar", "train-*.tar", or their folder;
///  - an IDX file of pictures (MNIST), plain or gzipped, its labels beside it (images-idx3 → labels-idx1);
///  - files of the other formats (formats.h), several of one in the same ways; a folder with an index.json (MDS).
/// InputError or IoError, naming the file and what to do, when it is none of these, missing, empty, truncated or damaged.
std::unique_ptr<Dataset> open_dataset(const std::string& path, const OpenOptions& options = {});
/// The same for files that are known by name; `path` is what the user wrote.
std::unique_ptr<Dataset> open_dataset(const std::string& path, const std::vector<std::string>& files,
                                      const OpenOptions& options = {});
/// The tars in a folder, in the order of their names; empty when `path` is no folder or has none.
std::vector<std::string> tars_in(const std::string& path);

}  // namespace millrace::data
