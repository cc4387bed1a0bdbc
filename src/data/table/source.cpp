#include "data/table/source.h"

#include <algorithm>
#include <filesystem>
#include <glob.h>

#include "base/file.h"
#include "base/format.h"
#include "data/formats/formats.h"
#include "data/io/listing.h"
#include "data/io/spool.h"
#include "data/table/labelled.h"
#include "data/table/query.h"

namespace millrace::data {
namespace fs = std::filesystem;
namespace {

constexpr size_t max_files = 1'000'000;

/// "a{1..3}b{x,y}" → a1bx a1by a2bx …; numbers keep their width.
void expand_braces(const std::string& pattern, size_t from, std::vector<std::string>& out) {
  const size_t open = pattern.find('{', from);
  const size_t close = open == std::string::npos ? open : pattern.find('}', open);
  if (close == std::string::npos) {
    if (out.size() >= max_files) fail<InputError>("{}: names more than {} files", pattern, max_files);
    out.push_back(pattern);
    return;
  }
  const std::string head = pattern.substr(0, open), body = pattern.substr(open + 1, close - open - 1),
                    tail = pattern.substr(close + 1);
  std::vector<std::string> choices;
  const size_t dots = body.find("..");
  if (dots != std::string::npos) {
    const std::string first = body.substr(0, dots), last = body.substr(dots + 2);
    const auto number = [](const std::string& s) {
      return !s.empty() && s.size() <= 9 &&
             std::all_of(s.begin(), s.end(), [](char c) { return c >= '0' && c <= '9'; });
    };
    if (!number(first) || !number(last) || std::stol(first) > std::stol(last))
      fail<InputError>("{}: \"{{{}}}\" is no range; write it as {{000..007}}", pattern, body);
    for (long i = std::stol(first); i <= std::stol(last) && choices.size() <= max_files; ++i)
      choices.push_back(fmt::format("{:0{}}", i, first.size()));
  } else {
    for (size_t at = 0; at <= body.size();) {
      const size_t comma = std::min(body.find(',', at), body.size());
      choices.push_back(body.substr(at, comma - at));
      at = comma + 1;
    }
  }
  for (const std::string& choice : choices)
    expand_braces(head + choice + tail, head.size() + choice.size(), out);
}

std::vector<std::string> expand_wildcards(const std::string& pattern) {
  glob_t found{};
  const int status = ::glob(pattern.c_str(), 0, nullptr, &found);
  std::vector<std::string> paths;
  if (status == 0) paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  return paths;
}

std::string not_a_source(const std::string& path) {
  return fmt::format(
      "{}: is no data source: neither a folder of class folders, nor a tar, nor an IDX file, nor of another "
      "format "
      "that is read here (docs/data.md lists them), or it is damaged; check the path, or copy the file again",
      path);
}

}  // namespace

std::vector<std::string> expand_paths(const std::string& pattern) {
  std::error_code ignored;
  if (is_piped(pattern)) return {pattern};             // the command's own braces and stars
  if (fs::exists(pattern, ignored)) return {pattern};  // a real file whose name has brackets
  std::vector<std::string> braced, paths;
  expand_braces(pattern, 0, braced);
  for (const std::string& item : braced) {
    if (is_remote_pattern(item)) {
      const std::vector<std::string> found = list_remote(item);
      paths.insert(paths.end(), found.begin(), found.end());
      continue;
    }
    if (is_elsewhere(item) || item.find_first_of("*?[") == std::string::npos) {
      paths.push_back(item);
      continue;
    }
    const std::vector<std::string> found = expand_wildcards(item);
    paths.insert(paths.end(), found.begin(), found.end());
  }
  if (paths.empty()) fail<InputError>("{}: matches no file; check the pattern", pattern);
  return paths;
}

std::vector<double> Source::numbers(const std::string& column) const {
  fail<InputError>(
      "{}: has no columns, and so no '{}'; pack it, or keep it in a format with columns (docs/data.md)",
      path_, column);
}

std::string Source::key(int64_t index) const {
  std::string text = name(index);
  if (text.starts_with(path_)) text.erase(0, path_.size());
  return text.starts_with('/') ? text.substr(1) : text;
}

namespace {

// A server is asked once for what a pattern names: what it says later may differ.
std::unique_ptr<Source> open_files(const std::string& path, const std::vector<std::string>& paths);
std::unique_ptr<Source> open_files(const std::string& path, const std::vector<std::string>& paths,
                                   const std::string& where);
std::unique_ptr<Dataset> dataset_of(const std::string& path, const std::vector<std::string>& paths) {
  const std::vector<std::string> tars = tars_in(path);
  return open_dataset(path, tars.empty() ? paths : tars);
}

}  // namespace

std::unique_ptr<Source> open_samples(const std::string& path, const std::string& where) {
  std::error_code ignored;
  const std::vector<std::string> paths = expand_paths(path);
  const std::string& first = paths[0];
  if (!is_remote(first)) {
    const std::string file = data_file(first);
    const bool columns =
        fs::is_directory(file, ignored) || (fs::is_regular_file(file, ignored) &&
                                            fs::file_size(file, ignored) > 0 && format_of(*open_file(file)));
    if (!columns) return open_files(path, paths, where);
  }
  std::shared_ptr<const Dataset> dataset = dataset_of(path, paths);
  if (has_pictures_and_labels(*dataset)) return open_files(path, paths, where);
  if (!where.empty()) dataset = select(std::move(dataset), Query::parse(where));
  return rows_of(std::move(dataset));
}

std::unique_ptr<Source> open_source(const std::string& path) { return open_files(path, expand_paths(path)); }

std::unique_ptr<Source> open_source(const std::string& path, const std::string& where) {
  return open_files(path, expand_paths(path), where);
}

namespace {

std::unique_ptr<Source> open_files(const std::string& path, const std::vector<std::string>& paths) {
  for (const std::string& item : paths) {
    std::error_code ignored;
    if (!is_elsewhere(item) && !fs::exists(item, ignored))
      fail<IoError>("{}: no such file or folder; check the path", item);
  }
  const auto known = [](const std::string& path_or_folder) {
    if (is_elsewhere(path_or_folder)) return true;
    const std::string item = data_file(path_or_folder);
    return !fs::is_directory(item) && fs::file_size(item) > 0 && format_of(*open_file(item));
  };
  const std::string& first = paths[0];
  if (known(first)) {
    auto dataset = open_dataset(path, paths);
    return dataset->format() == idx_format.name ? open_idx(first, std::move(dataset))
                                                : labelled_pictures(std::move(dataset));
  }
  if (paths.size() > 1)
    fail<InputError>("{}: is of no format with columns (or is damaged); a list of files must be of one",
                     first);
  if (fs::is_directory(first)) {
    const std::vector<std::string> shards = tars_in(first);
    return shards.empty() ? open_folder(first) : labelled_pictures(open_dataset(first, shards));
  }
  if (fs::file_size(first) == 0) fail<InputError>("{}: the file is empty; copy it again", first);
  throw InputError(not_a_source(first));
}

std::unique_ptr<Source> open_files(const std::string& path, const std::vector<std::string>& paths,
                                   const std::string& where) {
  if (where.empty()) return open_files(path, paths);
  const Query query = Query::parse(where);
  std::shared_ptr<const Dataset> dataset = dataset_of(path, paths);
  std::vector<int64_t> samples = matching(*dataset, query);
  if (samples.empty()) fail<InputError>("{}: no sample matches the condition {}", path, where);
  return select(std::shared_ptr<const Source>(labelled_pictures(std::move(dataset))), std::move(samples));
}

}  // namespace

std::string decode_sample(const Sample& sample, Picture& picture) {
  if (sample.height == 0) return decode_picture(sample.bytes, picture);
  picture.height = sample.height;
  picture.width = sample.width;
  picture.channels = sample.channels;
  picture.pixels.assign(sample.bytes.begin(), sample.bytes.end());
  return {};
}

}  // namespace millrace::data
