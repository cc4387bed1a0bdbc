// Files mapped into memory for reading.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

namespace millrace {

/// A file mapped into memory, for as long as the object lives. Empty files give an empty span.
///
/// When a part of the file is gone when it is read (it was cut short meanwhile, or its disk fails) the system
/// sends SIGBUS, which would end the process. Here zeros stand for that part from then on, and lost() is
/// true.
class MappedFile {
 public:
  MappedFile() = default;
  /// IoError when the file is missing, a folder or unreadable.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  std::span<const uint8_t> bytes() const { return {data_, size_}; }
  bool lost() const;

 private:
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
  int place_ = -1;  // among those that are watched
};

/// IoError that names a living MappedFile that is lost(), or whose file was changed or cut short since it was
/// mapped, if there is one. Another file in its place (as AtomicFile puts one), none, and bytes added at the
/// end change nothing of what is mapped. Cheap: it looks at the files about once a second, or `now`.
void require_mapped_files(bool now = false);
/// Is any living MappedFile lost()? Costs nothing.
bool any_mapped_file_lost();
/// The same at once, of the one that `memory` is a part of; of all where it is of none.
void require_mapped_file(const void* memory);

}  // namespace millrace
