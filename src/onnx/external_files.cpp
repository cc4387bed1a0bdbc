#include "onnx/external_files.h"

namespace millrace::onnx {

std::shared_ptr<const MappedFile> ExternalFiles::open(const std::filesystem::path& path) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const MappedFile>& file = files_[path];
  if (!file) file = std::make_shared<const MappedFile>(path);
  return file;
}

void ExternalFiles::require_unchanged() {
  const std::lock_guard lock(mutex_);
  for (const auto& [path, file] : files_)
    if (file && !file->bytes().empty()) require_mapped_file(file->bytes().data());
}

}  // namespace millrace::onnx
