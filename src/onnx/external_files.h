// Files of a model's external data that stay mapped, so that arrays can lie in them.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>

#include "base/mapped_file.h"

namespace millrace::onnx {

class ExternalFiles {
 public:
  /// A file, mapped when it is first asked for. IoError when it cannot be.
  std::shared_ptr<const MappedFile> open(const std::filesystem::path& path);
  /// Whether an address lies in one of them.
  bool contains(const void* address);
  /// IoError when one of them was written to or cut short since it was mapped.
  void require_unchanged();

 private:
  std::mutex mutex_;
  std::map<std::filesystem::path, std::shared_ptr<const MappedFile>> files_;
};

}  // namespace millrace::onnx
