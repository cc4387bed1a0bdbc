// A table in a folder that names the files there, as people give classes to pictures: filename,label.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <millrace/dataset.h>

namespace millrace::data {

struct FolderTable {
  std::string path;
  std::vector<Column> columns;  // of the table, but the one of names
  std::vector<std::shared_ptr<const ColumnValues>> read;
  /// The rows that name each file; none of a file that is not in it.
  std::vector<std::vector<int64_t>> rows;
  std::vector<int64_t> lost;  // rows that name no file
};

/// Of these tables (CSV) the one that names most of the files: by their paths below the folder, their names,
/// or these without endings; null where none names half of them. Where half of a table's rows name none, its
/// texts must name all, as those of a table of more files do. `options`: what is known of the table.
std::shared_ptr<const FolderTable> folder_table(std::span<const std::string> tables,
                                                std::span<const std::string> files,
                                                const OpenOptions& options);

}  // namespace millrace::data
