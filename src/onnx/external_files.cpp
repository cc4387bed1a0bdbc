#include "onnx/external_files.h"

#include <algorithm>
#include <cstdint>
#include <span>

namespace millrace::onnx {

std::shared_ptr<const MappedFile> ExternalFiles::open(const std::filesystem::path& path) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const MappedFile>& file = files_[path];
  if (!file) file = std::make_shared<const MappedFile>(path);
  return file;
}

bool ExternalFiles::contains(const void* address) {
  const std::lock_guard lock(mutex_);
  const auto at = reinterpret_cast<uintptr_t>(address);
  return std::any_of(files_.begin(), files_.end(), [&](const auto& each) {
    const std::span<const uint8_t> bytes = each.second ? each.second->bytes() : std::span<const uint8_t>();
    const auto begin = reinterpret_cast<uintptr_t>(bytes.data());
    return at >= begin && at - begin < bytes.size();
  });
}

void ExternalFiles::require_unchanged() {
  const std::lock_guard lock(mutex_);
  for (const auto& [path, file] : files_)
    if (file && !file->bytes().empty()) require_mapped_file(file->bytes().data());
}

}  // namespace millrace::onnx
