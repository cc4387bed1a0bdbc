#include <filesystem>

#include "base/file.h"
#include "base/format.h"
#include "data/codecs/pictures/picture.h"
#include "data/codecs/pictures/png.h"
#include "data/formats/content.h"
#include "data/formats/folder.h"

namespace millrace::data {
namespace fs = std::filesystem;
namespace {

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

std::unique_ptr<DatasetWriter> create_folder(const std::string& path, const std::vector<Column>& columns) {
  return std::make_unique<FolderWriter>(path, columns);
}

}  // namespace millrace::data
