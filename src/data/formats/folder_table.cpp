#include "data/formats/folder_table.h"

#include <algorithm>
#include <filesystem>
#include <unordered_map>

#include <millrace/error.h>

#include "data/formats/open_dataset.h"
#include "data/table/column_values.h"
#include "data/table/read_columns.h"

namespace millrace::data {
namespace fs = std::filesystem;
namespace {

/// All ways to name a file; -1 for what names several.
std::unordered_map<std::string, int64_t> names_of_files(std::span<const std::string> files) {
  std::unordered_map<std::string, int64_t> names;
  for (size_t i = 0; i < files.size(); ++i) {
    const fs::path path(files[i]);
    std::vector<std::string> ways = {files[i], path.filename().string(), path.stem().string(),
                                     (path.parent_path() / path.stem()).generic_string()};
    std::sort(ways.begin(), ways.end());
    ways.erase(std::unique(ways.begin(), ways.end()), ways.end());
    for (const std::string& way : ways) {
      const auto [at, added] = names.emplace(way, static_cast<int64_t>(i));
      if (!added) at->second = -1;
    }
  }
  return names;
}

std::string name_in(const ColumnValues& values, size_t row) {
  if (!values.has(row)) return {};
  if (values.kind == ColumnKind::integer) return std::to_string(values.integers[row]);
  return fs::path(std::string(values.contents[row])).lexically_normal().generic_string();
}

int64_t named_files(const FolderTable& table) {
  return std::count_if(table.rows.begin(), table.rows.end(), [](const auto& rows) { return !rows.empty(); });
}

std::shared_ptr<const FolderTable> read_table(const std::string& path, std::span<const std::string> files,
                                              const OpenOptions& options) {
  const auto table = open_dataset(path, options);
  const auto known = names_of_files(files);
  std::shared_ptr<FolderTable> best;
  size_t most = 0, named_by = 0;
  for (size_t c = 0; c < table->columns().size(); ++c) {
    const ColumnKind kind = table->columns()[c].kind;
    if (kind != ColumnKind::text && kind != ColumnKind::integer) continue;
    const auto values = read_columns(*table, 0, table->count(), {&c, 1});
    auto found = std::make_shared<FolderTable>();
    found->path = path;
    found->rows.resize(files.size());
    for (size_t row = 0; row < values[0].size(); ++row) {
      const auto at = known.find(name_in(values[0], row));
      if (at == known.end() || at->second < 0)
        found->lost.push_back(static_cast<int64_t>(row));
      else
        found->rows[static_cast<size_t>(at->second)].push_back(static_cast<int64_t>(row));
    }
    const auto named = static_cast<size_t>(named_files(*found));
    const bool names_all = named == files.size() && kind == ColumnKind::text;
    const bool many_lost = 2 * std::ssize(found->lost) > table->count() && !names_all;
    if (2 * named < files.size() || many_lost || named <= most) continue;
    most = named;
    named_by = c;
    best = std::move(found);
  }
  if (!best) return nullptr;
  // The first line alone names no file: it has the names of the columns.
  if (!options.header && best->lost == std::vector<int64_t>{0}) {
    OpenOptions named = options;
    named.header = true;
    return read_table(path, files, named);
  }
  for (size_t c = 0; c < table->columns().size(); ++c) {
    const Column& column = table->columns()[c];
    if (c == named_by || column.name == "__key__") continue;
    best->columns.push_back(column);
    best->read.push_back(
        std::make_shared<const ColumnValues>(std::move(read_columns(*table, 0, table->count(), {&c, 1})[0])));
  }
  return best;
}

}  // namespace

std::shared_ptr<const FolderTable> folder_table(std::span<const std::string> tables,
                                                std::span<const std::string> files,
                                                const OpenOptions& options) {
  std::shared_ptr<const FolderTable> best;
  for (const std::string& path : tables) try {
      const auto table = read_table(path, files, options);
      if (table && (!best || named_files(*table) > named_files(*best))) best = table;
    } catch (const Error&) {  // it is no table
    }
  return best;
}

}  // namespace millrace::data
