#include "data/formats/open_dataset.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <set>

#include "base/format.h"
#include "data/formats/formats.h"
#include "data/formats/text_sniff.h"
#include "data/io/compression.h"
#include "data/io/expand_paths.h"
#include "data/io/location.h"
#include "data/io/open_file.h"
#include "data/io/unpacked_file.h"

namespace millrace::data {
namespace {

/// One for each file, all of the same columns; else none.
std::vector<std::shared_ptr<const Index>> indices_of(const Files& files, const Format& format,
                                                     std::vector<std::string>& notes) {
  std::vector<std::shared_ptr<const Index>> indices;
  for (const auto& file : files) {
    std::string why;
    auto index = open_index(*file, why);
    if (!why.empty()) notes.push_back(why);
    const bool fits = index && index->located() && index->count() > 0 && index->format() == format.name &&
                      (indices.empty() || index->columns() == indices[0]->columns());
    if (!fits) return {};
    indices.push_back(std::move(index));
  }
  return indices;
}

/// Text with bytes of 0 in it: every second one is UTF-16 without its mark.
void refuse_nuls(const std::string& path, std::string_view head) {
  std::array<size_t, 2> nuls = {};
  for (size_t i = 0; i < head.size(); ++i) {
    const auto byte = static_cast<unsigned char>(head[i]);
    if ((byte < 0x20 && byte != 0 && !std::isspace(byte)) || byte == 0x7f) return;
    nuls[i % 2] += byte == 0;
  }
  if (nuls[0] + nuls[1] == 0) return;
  for (const size_t k : {size_t{0}, size_t{1}})
    if (nuls[k] >= 2 && nuls[1 - k] == 0 && nuls[k] * 8 > head.size() * 3)
      fail<InputError>(
          "{}: is UTF-16 without its mark; convert it to UTF-8 first (iconv -f utf-16{} -t utf-8)", path,
          k == 0 ? "be" : "le");
  fail<InputError>(
      "{}: has bytes of 0 among its text, the first at byte {}: it is damaged, or no text; copy it "
      "again, or take them out (tr -d '\\0')",
      path, head.find('\0'));
}

/// What is not read, but often given.
void refuse_known(const std::string& path, const RandomAccessFile& file) {
  const Bytes bytes = file.read(0, std::min<uint64_t>(file.size(), 4096));
  const std::string_view head = bytes.text();
  if (head.starts_with("PK\3\4"))
    fail<InputError>(
        "{}: is a zip archive or an Excel workbook, which are not read: unpack it (unzip), or save it as CSV",
        path);
  if (head.starts_with("\xff\xfe") || head.starts_with("\xfe\xff"))
    fail<InputError>("{}: is UTF-16; convert it to UTF-8 first (iconv -f utf-16 -t utf-8)", path);
  if (head.starts_with("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"))
    fail<InputError>(
        "{}: is an Excel workbook (.xls) or another document of old Office programs, which are "
        "not read: save it as CSV",
        path);
  if (const size_t at = head.find_first_not_of(" \t\r\n");
      at != head.npos && (head[at] == '[' || head[at] == '{')) {
    if (path.ends_with(".toml"))
      fail<InputError>("{}: is TOML, a recipe perhaps; what is read here are the data that it names", path);
    fail<InputError>(
        "{}: is JSON, of which only JSON lines are read, an object a line: in pandas to_json(…, "
        "orient=\"records\", lines=True); of an array, jq -c '.[]' makes them",
        path);
  }
  refuse_nuls(path, head);
}

/// Rows of columns that are known: nothing else tells that a line of names alone, or rows that are damaged,
/// are no plain text.
bool known_rows(const RandomAccessFile& file, const Format* found, const OpenOptions& options) {
  if (found && (found->name != "text" || !is_piped(file.path()))) return false;
  const auto is_text = [](const std::string& name) { return name == "text"; };  // what lines are called
  if (std::all_of(options.texts.begin(), options.texts.end(), is_text)) return false;
  return begins_with_names(file.read(0, std::min<uint64_t>(file.size(), sniffed_text)).text(), options.texts);
}

/// The file that stands for a data set: index.json of a folder that has one, else `path` itself.
std::string data_file(const std::string& path) {
  const std::filesystem::path index = std::filesystem::path(path) / "index.json";
  std::error_code ignored;
  return std::filesystem::is_regular_file(index, ignored) ? index.string() : path;
}

/// The files of a folder that are parts of one table, as Spark writes them: all but hidden ones, "_SUCCESS"
/// and indices are of one kind, and their names differ by numbers alone.
std::vector<std::string> parts_in(const std::string& path) {
  std::vector<std::string> parts;
  std::set<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name[0] == '.' || name[0] == '_' || name.ends_with(".mrx")) continue;
    const std::string kind = std::filesystem::path(without_compression(name)).extension().string();
    static const std::set<std::string> tables = {".csv",     ".tsv",   ".jsonl",  ".ndjson",
                                                 ".parquet", ".arrow", ".feather"};
    if (!tables.contains(kind) || !at->is_regular_file(error)) return {};
    std::string without = name;
    std::erase_if(without, [](unsigned char c) { return std::isdigit(c); });
    names.insert(std::move(without));
    parts.push_back(at->path().string());
  }
  std::sort(parts.begin(), parts.end());
  return names.size() == 1 ? parts : std::vector<std::string>();
}

}  // namespace

std::vector<std::string> tars_in(const std::string& path) {
  std::vector<std::string> tars;
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return tars;
  std::filesystem::directory_iterator folder(path, error);
  if (error) fail<IoError>("{}: cannot be listed: {}", path, error.message());
  for (const auto& entry : folder)
    if (entry.path().extension() == ".tar") tars.push_back(entry.path().string());
  std::sort(tars.begin(), tars.end());
  return tars;
}

std::unique_ptr<Dataset> open_dataset(const std::string& path, const OpenOptions& options) {
  std::vector<std::string> files = tars_in(path);
  if (files.empty()) files = parts_in(path);
  return open_dataset(path, files.empty() ? expand_paths(path) : files, options);
}

std::unique_ptr<Dataset> open_dataset(const std::string& path, const std::vector<std::string>& paths,
                                      const OpenOptions& options) {
  for (const std::string& item : paths) {
    std::error_code ignored;
    if (!is_elsewhere(item) && !std::filesystem::exists(item, ignored))
      fail<IoError>("{}: no such file or folder; check the path", item);
  }
  Files files;
  const Format* format = nullptr;
  if (std::error_code ignored;
      paths.size() == 1 && std::filesystem::is_directory(data_file(paths[0]), ignored)) {
    auto folder = formats().at("folder").open(paths[0], {}, options);
    folder->set_origin("folder", {});
    return folder;
  }
  for (const std::string& named : paths) {
    const std::string item = data_file(named);
    files.push_back(open_file(item));
    if (files.back()->size() == 0) fail<InputError>("{}: the file is empty; copy it again", item);
    const Format* found = format_of(*files.back());
    if (!found && is_packed(*files.back())) {
      files.back() = unpacked_file(files.back());
      if (files.back()->size() == 0) fail<InputError>("{}: there is nothing in it; pack it again", item);
      found = format_of(*files.back());
    }
    if (known_rows(*files.back(), found, options)) found = &formats().at("csv");
    if (!found) {
      refuse_known(item, *files.back());
      std::vector<std::string> known;
      for (const Format* each : formats().all()) known.push_back(each->doc);
      fail<InputError>(
          "{}: is no data source: of none of the formats that are known here ({}), or damaged; check the "
          "path, or "
          "copy the file again",
          item, fmt::join(known, ", "));
    }
    if (format && found != format)
      fail<InputError>("{}: is {}, but {} is {}: files that are read together must be of one format",
                       files[0]->path(), format->doc, item, found->doc);
    format = found;
  }
  std::vector<std::string> notes;
  std::unique_ptr<Dataset> dataset;
  if (options.use_indices && format->open_indexed)
    if (auto indices = indices_of(files, *format, notes); !indices.empty())
      dataset = format->open_indexed(path, files, std::move(indices));
  if (!dataset) dataset = made_by("format", format->name, format->open(path, std::move(files), options));
  dataset->set_origin(format->name, std::move(notes));
  return dataset;
}

}  // namespace millrace::data
