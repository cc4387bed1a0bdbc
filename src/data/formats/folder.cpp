// A folder of files: a sample is a file. Columns are __key__ (the path below the folder), label (the name of
// the folder that a file lies in, where there are folders), the content: image, audio, text (all are .txt) or
// data, and, where all lie together, what a table there says of them.
#include <algorithm>
#include <filesystem>
#include <limits>

#include "base/file.h"
#include "base/format.h"
#include "base/is_run.h"
#include "base/words.h"
#include "data/codecs/pictures/decode.h"
#include "data/codecs/pictures/picture.h"
#include "data/codecs/pictures/png.h"
#include "data/codecs/sounds/sound.h"
#include "data/formats/content.h"
#include "data/formats/folder_table.h"
#include "data/formats/formats.h"
#include "data/formats/open_dataset.h"

namespace millrace::data {
namespace fs = std::filesystem;
namespace {

constexpr int most_depth = 16;

/// Folders that other programs leave behind.
bool is_debris(const std::string& name) {
  return name.front() == '.' || name == "__MACOSX" || name == "@eaDir" || name == "$RECYCLE.BIN" ||
         name == "System Volume Information";
}

/// By its name where that says it, else by its first bytes. What cameras put beside their pictures and what
/// tells of them is neither.
ColumnKind kind_of(const fs::path& path, const std::string& name) {
  if (is_picture_name(name)) return ColumnKind::picture;
  if (is_sound_name(name)) return ColumnKind::audio;
  if (has_ending(name, {".txt"})) return ColumnKind::text;
  if (has_ending(name, {".json", ".xml", ".csv", ".yaml", ".yml", ".md",  ".mat", ".npy", ".db",  ".ini",
                        ".nef",  ".cr2", ".cr3", ".dng",  ".arw", ".orf", ".rw2", ".pef", ".mov", ".mp4"}))
    return ColumnKind::bytes;
  const ColumnKind kind = file_kind(path.string());
  return kind == ColumnKind::text ? ColumnKind::bytes : kind;
}

class Folder final : public Dataset {
 public:
  Folder(const std::string& path, const OpenOptions& options) : Dataset(path) {
    scan("", 0);
    choose_kind();
    const bool classes =
        std::any_of(files_.begin(), files_.end(), [&](const File& file) { return !folder(file).empty(); });
    columns_ = {{"__key__", ColumnKind::text}};
    if (classes) columns_.push_back({"label", ColumnKind::text});
    columns_.push_back({kind_ == ColumnKind::picture ? "image"
                        : kind_ == ColumnKind::audio ? "audio"
                        : kind_ == ColumnKind::text  ? "text"
                                                     : "data",
                        kind_});
    if (!classes || std::all_of(files_.begin(), files_.end(),
                                [&](const File& file) { return file.folder == files_[0].folder; }))
      look_for_table(options);
  }

  int64_t count() const override { return static_cast<int64_t>(files_.size()); }
  std::string name(int64_t index) const override { return full_path(index).string(); }
  bool has(int64_t index, size_t column) const override {
    if (column >= own_) return !std::holds_alternative<std::monostate>(told(index, column));
    return columns_.at(column).name != "label" || !folder(at(index)).empty();
  }
  Value read(int64_t index, size_t column) const override {
    if (column >= own_) return told(index, column);
    const File& file = at(index);
    if (column == 0) return (fs::path(folder(file)) / file.name).generic_string();
    if (columns_.at(column).name == "label")
      return folder(file).empty() ? Value() : Value(fs::path(folder(file)).filename().string());
    std::vector<uint8_t> content = read_file(full_path(index));
    if (kind_ != ColumnKind::text) return Bytes(std::move(content));
    std::string text(content.begin(), content.end());
    if (!is_utf8(text)) fail<InputError>("{}: is no UTF-8 text; convert it with iconv", name(index));
    return text;
  }
  std::vector<std::string> class_names(size_t column) const override {
    if (!fault_.empty() && columns_.at(column).name == "label") throw InputError(fault_);
    return {};
  }
  std::string lacks() const override { return fault_; }

 private:
  struct File {
    size_t folder;  // into folders_
    std::string name;
    ColumnKind kind;
    int64_t row = -1;  // of the table; -1: none
  };

  const File& at(int64_t index) const { return files_.at(static_cast<size_t>(index)); }
  const std::string& folder(const File& file) const { return folders_[file.folder]; }
  fs::path full_path(int64_t index) const { return fs::path(path()) / folder(at(index)) / at(index).name; }

  /// Files and folders in order of name, so that the order does not depend on the file system. Of a run only
  /// what others put there. False, and nothing taken, of a folder that has (or is) runs and nothing else.
  bool scan(const std::string& below, int depth) {
    if (depth > most_depth)
      fail<InputError>("{}: folders are nested too deeply (a link that leads back?)",
                       (fs::path(path()) / below).string());
    std::vector<std::pair<std::string, bool>> entries;  // and whether it is a folder
    folders_.push_back(below);
    const size_t here = folders_.size() - 1;
    for (const auto& entry : fs::directory_iterator(fs::path(path()) / below)) {
      const std::string name = entry.path().filename().string();
      std::error_code lost;  // links that lead nowhere
      if (is_debris(name)) continue;
      if (entry.is_directory(lost) || entry.is_regular_file(lost))
        entries.emplace_back(name, entry.is_directory(lost));
    }
    std::sort(entries.begin(), entries.end());
    leaves_.push_back(true);
    const bool run = is_run(fs::path(path()) / below);
    bool runs = run, others = false;
    for (const auto& [name, folder] : entries) {
      if (run && is_of_run(name)) continue;
      const fs::path at = fs::path(below) / name;
      if (!folder) {
        const ColumnKind kind = kind_of(path() / at, name);
        // Notes, predictions and the like, of which a folder of data has none below it.
        if (run && !below.empty() && kind != ColumnKind::picture && kind != ColumnKind::audio) continue;
        files_.push_back({here, name, kind});
        if (below.empty() && has_ending(name, {".csv", ".tsv"})) tables_.push_back((path() / at).string());
        others = true;
      } else if (!scan(at.generic_string(), depth + 1)) {
        runs = true;
      } else {
        leaves_[here] = false;
        others = true;
      }
    }
    if (!runs || others) return true;
    folders_.pop_back();
    leaves_.pop_back();
    return false;
  }

  /// Where there are pictures all else is passed over, as a licence beside them; so with sounds.
  void choose_kind() {
    std::array<int64_t, 8> counts{};
    for (const File& file : files_) ++counts[static_cast<size_t>(file.kind)];
    const auto some = [&](ColumnKind kind) { return counts[static_cast<size_t>(kind)] > 0; };
    kind_ = some(ColumnKind::picture)  ? ColumnKind::picture
            : some(ColumnKind::audio)  ? ColumnKind::audio
            : !some(ColumnKind::bytes) ? ColumnKind::text
                                       : ColumnKind::bytes;
    if (files_.empty())
      fail<InputError>(
          "{}: has no pictures, nor any other files; put JPEG files into one folder for each class, as in "
          "{}/cat/1.jpg",
          path(), path());
    std::vector<int64_t> wanted(folders_.size());
    std::vector<std::string> other(folders_.size());
    for (const File& file : files_)
      if (kind_ == ColumnKind::bytes || file.kind == kind_)
        ++wanted[file.folder];
      else
        other[file.folder] = file.name;
    std::erase_if(files_, [&](const File& file) { return kind_ != ColumnKind::bytes && file.kind != kind_; });
    find_fault(wanted, other);
  }

  /// A table that names the files: its columns are theirs, and a file is a sample for each row that names it.
  void look_for_table(const OpenOptions& options) {
    if (kind_ != ColumnKind::picture && kind_ != ColumnKind::audio) return;
    if (tables_.empty()) tables_ = tables_beside();
    std::vector<std::string> names;
    for (const File& file : files_) names.push_back((fs::path(folder(file)) / file.name).generic_string());
    table_ = folder_table(tables_, names, options);
    if (!table_ || table_->columns.empty()) return;
    std::erase_if(columns_, [](const Column& column) { return column.name == "label"; });
    own_ = columns_.size();
    std::vector<File> samples;
    int64_t untold = 0;
    for (size_t i = 0; i < files_.size(); ++i) {
      File file = files_[i];
      untold += table_->rows[i].empty();
      if (table_->rows[i].empty()) samples.push_back(file);
      for (file.row = -1; const int64_t row : table_->rows[i]) {
        file.row = row;
        samples.push_back(file);
      }
    }
    files_ = std::move(samples);
    fault_.clear();
    std::string text = fmt::format("{} says what the files are:", table_->path);
    for (const Column& column : table_->columns) {
      columns_.push_back(column);
      // As it is called there, unless that is taken.
      for (size_t c = 0; c < own_; ++c)
        if (columns_[c].name == column.name) columns_.back().name = "table_" + column.name;
      text += " " + columns_.back().name;
    }
    if (untold > 0) text += fmt::format("; {} of {} files are not in it", untold, names.size());
    if (!table_->lost.empty()) text += fmt::format("; {} of its rows name no file", table_->lost.size());
    note(text);
  }

  /// Tables beside the folder whose names say that they go with it.
  std::vector<std::string> tables_beside() const {
    std::error_code none;
    fs::path folder = fs::absolute(path(), none).lexically_normal();
    if (!folder.has_filename()) folder = folder.parent_path();
    const std::string name = folder.filename().string();
    std::vector<std::string> tables;
    for (const std::string& stem : {std::string("labels"), std::string("metadata"), name, name + "_labels"})
      for (const char* ending : {".csv", ".tsv"})
        if (const fs::path table = folder.parent_path() / (stem + ending); fs::is_regular_file(table, none))
          tables.push_back(table.string());
    return tables;
  }

  /// What the table says of a sample.
  Value told(int64_t index, size_t column) const {
    const int64_t row = at(index).row;
    return row < 0 ? Value() : value_at(table_->read.at(column - own_), static_cast<size_t>(row));
  }

  /// Why the folders are no classes.
  void find_fault(const std::vector<int64_t>& wanted, const std::vector<std::string>& other) {
    const char* what = kind_ == ColumnKind::picture ? "pictures"
                       : kind_ == ColumnKind::audio ? "sounds"
                                                    : "files";
    if (wanted[0] > 0) {
      const auto outside =
          std::find_if(files_.begin(), files_.end(), [](const File& file) { return file.folder == 0; });
      fault_ = fmt::format(
          "{0}: {1} lies outside of class folders; put the {2} into one folder for each class, or beside "
          "them a "
          "table, {0}/labels.csv, with the lines filename,label and {1},CLASS …",
          path(), outside->name, what);
      return;
    }
    for (size_t f = 1; f < folders_.size() && fault_.empty(); ++f)
      if (leaves_[f] && wanted[f] == 0)
        fault_ = fmt::format("class {}: no {} in {}{}; add some or remove the folder",
                             fs::path(folders_[f]).filename().string(), what,
                             (fs::path(path()) / folders_[f]).string(),
                             other[f].empty() ? "" : fmt::format(" (but other files, as {})", other[f]));
  }

  std::vector<std::string> folders_;  // below the path; the first is the path itself
  std::vector<bool> leaves_;          // of folders_: without folders
  std::vector<File> files_;
  ColumnKind kind_ = ColumnKind::bytes;
  std::string fault_;
  std::vector<std::string> tables_;  // that lie there
  std::shared_ptr<const FolderTable> table_;
  size_t own_ = std::numeric_limits<size_t>::max();  // columns before those of the table
};

/// Writes each sample as a file OUT/LABEL/KEY.EXTENSION; the extension is that of the content, and not put
/// behind a key that ends with it. The folder appears when it is complete (made beside it as OUT.partial
/// first). InputError when OUT exists, two samples would have one name, or a column is none of those above
/// (picture, audio, text, json or bytes; label an integer or a text).
class FolderWriter final : public DatasetWriter {
 public:
  FolderWriter(const std::string& path, const std::vector<Column>& columns) : path_(path), columns_(columns) {
    while (path_.ends_with('/')) path_.pop_back();
    partial_ = path_ + ".partial";
    std::error_code ignored;
    if (fs::exists(path_, ignored))
      fail<InputError>("{}: is there already; remove it or name another", path_);
    for (size_t c = 0; c < columns.size(); ++c) {
      const auto& [name, kind] = columns[c];
      const bool key = name == "__key__" && kind == ColumnKind::text;
      const bool label = !key && (name == "label" || name == "cls") &&
                         (kind == ColumnKind::integer || kind == ColumnKind::text);
      const bool content =
          !key && !label &&
          (kind == ColumnKind::picture || kind == ColumnKind::audio || kind == ColumnKind::text ||
           kind == ColumnKind::json || kind == ColumnKind::bytes);
      int& place = key ? key_ : label ? label_ : content_;
      if (place >= 0 || (!key && !label && !content))
        fail<InputError>(
            "{}: a folder holds __key__, label and one picture, sound, text or bytes a sample; it has no "
            "place "
            "for the column '{}' ({}); choose with --columns",
            path_, name, kind_name(kind));
      place = static_cast<int>(c);
    }
    if (content_ < 0) fail<InputError>("{}: there is no column whose content could be files", path_);
    fs::remove_all(partial_, ignored);
  }
  ~FolderWriter() override {
    std::error_code ignored;
    if (!finished_) fs::remove_all(partial_, ignored);
  }

  void add(std::span<const Value> values) override {
    fs::path file =
        key_ < 0 ? fs::path(fmt::format("{:08}", count_)) : key(values[static_cast<size_t>(key_)]);
    if (label_ >= 0) {
      const std::string label = label_text(values[static_cast<size_t>(label_)]);
      // Keys of folders name the class already.
      if (file.parent_path().filename() != label) file = file.parent_path() / label / file.filename();
    }
    const Value& value = values[static_cast<size_t>(content_)];
    const ColumnKind kind = columns_[static_cast<size_t>(content_)].kind;
    if (const auto* pixels = std::get_if<Pixels>(&value)) {
      Picture picture{pixels->height, pixels->width, pixels->channels, {}};
      picture.pixels.assign(pixels->bytes.view().begin(), pixels->bytes.view().end());
      write(file, "png", encode_png(picture));
    } else if (const auto* bytes = std::get_if<Bytes>(&value)) {
      const std::string extension = content_extension(bytes->view());
      write(file,
            !extension.empty()          ? extension
            : kind == ColumnKind::bytes ? "bin"
                                        : kind_name(kind),
            bytes->view());
    } else if (const auto* text = std::get_if<std::string>(&value)) {
      write(file, kind == ColumnKind::json ? "json" : "txt",
            {reinterpret_cast<const uint8_t*>(text->data()), text->size()});
    } else {
      fail<InputError>("{}: sample {} has no {}", path_, count_,
                       columns_[static_cast<size_t>(content_)].name);
    }
    ++count_;
  }

  void finish() override {
    if (count_ == 0) fail<InputError>("{}: there are no samples to write", path_);
    std::error_code error;
    fs::rename(partial_, path_, error);
    if (error) fail_writing(path_, "give it its name", error.value());
    finished_ = true;
  }

 private:
  /// Names come from data and must not lead out of the folder.
  [[noreturn]] void refuse(const std::string& name) const {
    fail<InputError>("{}: sample {} is called '{}', which is no name of a file in a folder", path_, count_,
                     name);
  }
  fs::path key(const Value& value) const {
    const auto* text = std::get_if<std::string>(&value);
    if (!text) fail<InputError>("{}: sample {} has no __key__", path_, count_);
    const fs::path file(*text);
    if (text->empty() || text->find('\0') != text->npos || file.is_absolute() || file.filename().empty())
      refuse(*text);
    for (const fs::path& part : file)
      if (part == ".." || part == ".") refuse(*text);
    return file;
  }
  std::string label_text(const Value& value) const {
    if (const auto* integer = std::get_if<int64_t>(&value)) return std::to_string(*integer);
    const auto* text = std::get_if<std::string>(&value);
    if (!text) fail<InputError>("{}: sample {} has no label", path_, count_);
    if (text->empty() || text->find_first_of(std::string_view("/\0", 2)) != text->npos ||
        text->front() == '.')
      refuse(*text);
    return *text;
  }

  void write(const fs::path& file, const std::string& extension, std::span<const uint8_t> content) {
    const std::string name =
        file.string() + (file.string().ends_with("." + extension) ? "" : "." + extension);
    const fs::path to = fs::path(partial_) / name;
    std::error_code ignored;
    if (fs::exists(to, ignored))
      fail<InputError>("{}: two samples are called {}; give them different keys", path_, name);
    fs::create_directories(to.parent_path(), ignored);
    write_unflushed(to, content);
  }

  std::string path_, partial_;
  std::vector<Column> columns_;
  int key_ = -1, label_ = -1, content_ = -1;
  int64_t count_ = 0;
  bool finished_ = false;
};

}  // namespace

static std::unique_ptr<Dataset> open_folder(const std::string& path, Files /*none*/,
                                            const OpenOptions& options) {
  try {
    return std::make_unique<Folder>(path, options);
  } catch (const fs::filesystem_error& error) {
    fail<IoError>("{}: cannot be listed: {}", path, error.code().message());
  }
}

MILLRACE_FORMAT(folder){.name = "folder",
                        .doc = "a folder of files, in a folder for each class",
                        .place = 130,
                        .matches = [](std::string_view, std::span<const uint8_t>) { return false; },
                        .open = open_folder,
                        .create = create_as<FolderWriter>};

}  // namespace millrace::data
