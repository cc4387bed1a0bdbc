#include "task/inputs/own_files.h"

#include <algorithm>
#include <filesystem>

#include <millrace/file.h>

#include "base/format.h"
#include "base/words.h"
#include "data/formats/content.h"
#include "data/formats/file_list.h"
#include "data/formats/open_dataset.h"
#include "data/io/expand_paths.h"
#include "data/io/location.h"
#include "data/io/open_file.h"

namespace millrace::task {
namespace fs = std::filesystem;
namespace {

bool is_there(const std::string& path) {
  std::error_code ignored;
  return data::is_remote(path) || fs::exists(path, ignored);
}

/// The lines of a text that are not empty; of what has bytes 0, what stands between these (find -print0).
std::vector<std::string> lines_of(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  if (text.find('\0') != std::string_view::npos) return split_list(text, '\0');
  std::vector<std::string> lines = lines_in(text);
  std::erase(lines, "");
  return lines;
}

/// Could it be a list? Control characters but line ends, tabs and 0 say that it is no text.
bool may_list(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) {
    return (static_cast<uint8_t>(c) < 0x20 && c != '\0' && c != '\t' && c != '\n' && c != '\r') || c == 0x7f;
  });
}

/// The paths in a list; nothing where it is none.
std::vector<std::string> listed_paths(const std::string& list, const OwnFiles& own) {
  constexpr uint64_t looked_at = 8192;
  const fs::path folder = fs::path(list).parent_path();
  const auto beside = [&](const std::string& line) { return (folder / line).string(); };
  const auto known = [&](const std::string& line) { return is_there(line) || is_there(beside(line)); };
  // As what is wanted is called, and no row of a table: files that are not there can be named by that.
  const auto named = [&](const std::string& line) {
    return own.is_name(line) && line.find_first_of(",;\t") == line.npos;
  };
  const auto file = data::open_file(list);
  const data::Bytes head = file->read(0, std::min(file->size(), looked_at));
  if (!may_list(head.text())) return {};
  std::vector<std::string> first = lines_of(head.text());
  if (file->size() > looked_at && first.size() > 1) first.pop_back();  // it may go on
  const bool zeros = head.text().find('\0') != std::string_view::npos;
  const bool is_list = !zeros && std::any_of(first.begin(), first.end(), known);
  const bool all = !first.empty() && std::all_of(first.begin(), first.end(), [&](const std::string& line) {
    return known(line) || named(line);
  });
  if (!is_list && !all) return {};
  std::vector<std::string> paths = lines_of(file->read(0, file->size()).text());
  for (std::string& path : paths)
    if (!is_there(path) && is_there(beside(path))) path = beside(path);
  return paths;
}

}  // namespace

bool is_own_file(const std::string& path, const OwnFiles& own) {
  std::error_code ignored;
  if (path != "-" && own.is_name(path)) return !fs::is_directory(path, ignored);
  if (path != "-") return fs::is_regular_file(path, ignored) && data::file_kind(path) == own.kind;
  const auto file = data::open_file(path);
  return data::content_kind(file->read(0, std::min<uint64_t>(file->size(), 64)).view()) == own.kind;
}

std::vector<std::string> paths_of(const std::string& argument, const OwnFiles& own) {
  std::error_code ignored;
  if (argument == "-" || fs::is_regular_file(argument, ignored)) {
    if (is_own_file(argument, own)) return {argument};
    std::vector<std::string> listed = listed_paths(argument, own);
    return listed.empty() ? std::vector{argument} : listed;
  }
  if (data::is_elsewhere(argument) || fs::exists(argument, ignored)) return {argument};
  const std::vector<std::string> found = data::expand_paths(argument);
  const bool files = std::any_of(found.begin(), found.end(), [&](const std::string& path) {
    return fs::is_directory(path, ignored) || is_own_file(path, own);
  });
  return files ? found : std::vector{argument};
}

std::shared_ptr<const data::Dataset> files_or_dataset(const std::vector<std::string>& paths,
                                                      const std::string& column, const OwnFiles& own) {
  if (std::all_of(paths.begin(), paths.end(),
                  [&](const std::string& path) { return is_own_file(path, own); }))
    return data::file_list(paths, paths[0], {column.empty() ? own.column : column, own.kind});
  if (paths.size() != 1) fail<InternalError>("{} sources where one is opened", paths.size());
  return data::open_dataset(paths[0]);
}

}  // namespace millrace::task
