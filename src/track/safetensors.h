// The safetensors format (github.com/huggingface/safetensors, "Format"): u64 header length, JSON header, raw
// tensors.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <millrace/weights.h>

#include "base/mapped_file.h"

namespace millrace::track {

/// A file open for reading. Header and sizes are checked at once: IoError when the file is missing or cut
/// off, InputError when it is no safetensors file, has a dtype we do not store, or its checksum does not fit.
class SafeTensors {
 public:
  explicit SafeTensors(const std::filesystem::path& path);
  /// The same over bytes in memory that outlive the object; `name` is for messages.
  SafeTensors(std::span<const uint8_t> bytes, std::string name);

  /// Metadata without the checksum.
  const Metadata& metadata() const { return metadata_; }
  /// Whether the file carried our checksum (files of other programs do not).
  bool has_checksum() const { return has_checksum_; }
  /// Names in order of position in the file.
  std::vector<std::string> names() const;
  bool has(const std::string& name) const { return tensors_.contains(name); }
  const Type& type(const std::string& name) const { return require(name).type; }
  /// A copy of one tensor; InputError when there is none of that name.
  Array tensor(const std::string& name) const;

 private:
  struct Entry {
    Type type;
    uint64_t begin = 0, end = 0;  // in the data section
  };
  const Entry& require(const std::string& name) const;
  void parse();

  MappedFile file_;
  std::span<const uint8_t> bytes_, data_;
  std::string name_;
  std::map<std::string, Entry> tensors_;
  Metadata metadata_;
  bool has_checksum_ = false;
};

}  // namespace millrace::track
