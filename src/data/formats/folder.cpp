// A folder of class folders of pictures.
#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/format.h"
#include "data/formats/formats.h"

namespace millrace::data {
namespace fs = std::filesystem;
namespace {

class FolderSource final : public Source {
 public:
  explicit FolderSource(const std::string& path) {
    path_ = path;
    scan(path, 0);
    if (files_.empty())
      fail<InputError>(
          "{}: has no pictures; put JPEG files into one folder for each class, as in {}/cat/1.jpg", path,
          path);
    std::vector<std::string> names;
    for (const File& file : files_) names.push_back(class_name(file));
    classes_ = names;
    std::sort(classes_.begin(), classes_.end());
    classes_.erase(std::unique(classes_.begin(), classes_.end()), classes_.end());
    for (size_t i = 0; i < files_.size(); ++i)
      files_[i].label = std::lower_bound(classes_.begin(), classes_.end(), names[i]) - classes_.begin();
  }

  int64_t count() const override { return static_cast<int64_t>(files_.size()); }
  int64_t label(int64_t index) const override { return files_.at(index).label; }
  std::string name(int64_t index) const override { return full_path(files_.at(index)).string(); }
  Sample read(int64_t index) const override {
    Sample sample;
    sample.storage = read_file(full_path(files_.at(index)));
    sample.bytes = sample.storage;
    return sample;
  }

 private:
  struct File {
    size_t folder;  // into folders_
    std::string name;
    int64_t label = 0;
  };

  fs::path full_path(const File& file) const { return folders_[file.folder] / file.name; }
  std::string class_name(const File& file) const { return folders_[file.folder].filename().string(); }

  /// Files and folders in order of name, so that the index does not depend on the file system.
  void scan(const fs::path& folder, int depth) {
    std::vector<fs::path> below;
    std::vector<std::string> pictures;
    std::string other;
    for (const auto& entry : fs::directory_iterator(folder)) {
      const std::string name = entry.path().filename().string();
      if (name.front() == '.') continue;
      if (entry.is_directory())
        below.push_back(entry.path());
      else if (is_picture_name(name))
        pictures.push_back(name);
      else
        other = name;
    }
    std::sort(below.begin(), below.end());
    std::sort(pictures.begin(), pictures.end());
    if (depth > 0 && pictures.empty() && below.empty())
      fail<InputError>("class {}: no pictures in {}{}; add JPEG files or remove the folder",
                       folder.filename().string(), folder.string(),
                       other.empty() ? "" : fmt::format(" (but other files, as {})", other));
    if (depth == 0 && !pictures.empty())
      fail<InputError>(
          "{}: {} lies outside of class folders; put the pictures into one folder for each class",
          folder.string(), pictures.front());
    if (!pictures.empty()) {
      folders_.push_back(folder);
      for (std::string& picture : pictures) files_.push_back({folders_.size() - 1, std::move(picture), 0});
    }
    if (depth > 16)
      fail<InputError>("{}: folders are nested too deeply (a link that leads back?)", folder.string());
    for (const fs::path& next : below) scan(next, depth + 1);
  }

  std::vector<fs::path> folders_;
  std::vector<File> files_;
};

}  // namespace

std::unique_ptr<Source> open_folder(const std::string& path) {
  try {
    return std::make_unique<FolderSource>(path);
  } catch (const fs::filesystem_error& error) {
    fail<IoError>("{}: cannot be listed: {}", path, error.code().message());
  }
}

}  // namespace millrace::data
