// Files of named sections that are mapped, not read: docs/mill.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/mapped_file.h"

namespace millrace {

struct Section {
  std::string name;  // up to 23 bytes
  uint64_t offset = 0, size = 0, checksum = 0;
};

/// Where sections begin, and what is in them should begin.
inline constexpr uint64_t kSectionPage = 4096, kSectionAlign = 64;

/// Writes sections one after the other; the file appears with the last.
class SectionWriter {
 public:
  /// `magic`: 8 bytes that such files begin with.
  SectionWriter(const std::filesystem::path& path, std::string_view magic, uint32_t version);
  /// A section of these parts, each at a multiple of kSectionAlign; their places in it. IoError.
  std::vector<uint64_t> add(const std::string& name, std::span<const std::span<const uint8_t>> parts);
  void add(const std::string& name, std::string_view text);
  /// Writes the table, at the end, and puts the file in its place. IoError.
  void commit();

 private:
  void pad(uint64_t to);
  AtomicFile file_;
  std::string magic_;
  uint32_t version_;
  std::vector<Section> sections_;
};

/// A mapped file. Opening looks at header and table alone; all else when it is asked for.
class SectionFile {
 public:
  /// InputError when it is none, is of another version, was cut short or its table is damaged.
  SectionFile(const std::filesystem::path& path, std::string_view magic, uint32_t version);

  const std::vector<Section>& sections() const { return sections_; }
  /// The bytes of a section; InputError when there is none of this name. `check`: whether its checksum is to
  /// be right, which reads all of it.
  std::span<const uint8_t> bytes(std::string_view name, bool check) const;
  std::string_view text(std::string_view name, bool check) const;
  /// InputError for the first section whose checksum is wrong.
  void verify() const;
  const std::string& name() const { return name_; }
  /// IoError when the file was written to or cut short since it was opened.
  void require_unchanged() const { require_mapped_file(file_.bytes().data()); }
  /// The same for a file that is opened twice, and for no other one: which it is, when it was written, and
  /// the checksum of its table.
  const std::string& identity() const { return identity_; }

  /// Does the file begin like one?
  static bool begins(const std::filesystem::path& path, std::string_view magic);

 private:
  std::string name_, identity_;
  MappedFile file_;
  std::vector<Section> sections_;
};

}  // namespace millrace
