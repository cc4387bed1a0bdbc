#include "base/section_file.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <sys/stat.h>
#include <xxhash.h>

#include "base/format.h"

namespace millrace {
namespace {

/// The file ends with it: the sections' sizes and sums are known only when they are written.
struct Trailer {
  uint64_t table, count, file_size;
  uint64_t checksum;  // of header, table and what stands before this
};

struct Header {
  char magic[8];
  uint32_t version, page;
};

struct Entry {
  char name[24];  // ends in a zero
  uint64_t offset, size, checksum;
};

constexpr uint64_t kMostSections = 1024;

uint64_t hash(std::span<const uint8_t> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

template <typename T>
std::span<const uint8_t> bytes_of(const T& value) {
  return {reinterpret_cast<const uint8_t*>(&value), sizeof value};
}

uint64_t table_checksum(const Header& header, std::span<const uint8_t> table, const Trailer& trailer) {
  std::vector<uint8_t> all;
  const auto add = [&](std::span<const uint8_t> bytes) { all.insert(all.end(), bytes.begin(), bytes.end()); };
  add(bytes_of(header));
  add(table);
  add(bytes_of(trailer).first(offsetof(Trailer, checksum)));
  return hash(all);
}

}  // namespace

SectionWriter::SectionWriter(const std::filesystem::path& path, std::string_view magic, uint32_t version)
    : file_(path), magic_(magic), version_(version) {
  MILLRACE_CHECK(magic.size() == sizeof(Header::magic), "a magic of {} bytes", magic.size());
  Header header{{}, version_, static_cast<uint32_t>(kSectionPage)};
  std::memcpy(header.magic, magic_.data(), sizeof header.magic);
  file_.write(&header, sizeof header);
}

void SectionWriter::pad(uint64_t to) {
  static constexpr char zeros[kSectionPage] = {};
  const uint64_t over = file_.size() % to;
  if (over > 0) file_.write(zeros, to - over);
}

std::vector<uint64_t> SectionWriter::add(const std::string& name,
                                         std::span<const std::span<const uint8_t>> parts) {
  MILLRACE_CHECK(name.size() < sizeof(Entry::name), "a section's name is too long: {}", name);
  pad(kSectionPage);
  Section section{name, file_.size(), 0, 0};
  std::vector<uint64_t> places;
  XXH3_state_t* const state = XXH3_createState();
  XXH3_64bits_reset(state);
  static constexpr char zeros[kSectionAlign] = {};
  for (const std::span<const uint8_t> part : parts) {
    const uint64_t over = (file_.size() - section.offset) % kSectionAlign;
    if (over > 0) {
      XXH3_64bits_update(state, zeros, kSectionAlign - over);
      pad(kSectionAlign);
    }
    places.push_back(file_.size() - section.offset);
    XXH3_64bits_update(state, part.data(), part.size());
    file_.write(part.data(), part.size());
  }
  section.size = file_.size() - section.offset;
  section.checksum = XXH3_64bits_digest(state);
  XXH3_freeState(state);
  sections_.push_back(std::move(section));
  return places;
}

void SectionWriter::add(const std::string& name, std::string_view text) {
  const std::span<const uint8_t> part{reinterpret_cast<const uint8_t*>(text.data()), text.size()};
  add(name, std::span(&part, 1));
}

void SectionWriter::commit() {
  pad(kSectionAlign);
  Header header{{}, version_, static_cast<uint32_t>(kSectionPage)};
  std::memcpy(header.magic, magic_.data(), sizeof header.magic);
  std::vector<Entry> table;
  for (const Section& section : sections_) {
    Entry entry{{}, section.offset, section.size, section.checksum};
    std::memcpy(entry.name, section.name.data(), section.name.size());
    table.push_back(entry);
  }
  const std::span<const uint8_t> bytes{reinterpret_cast<const uint8_t*>(table.data()),
                                       table.size() * sizeof(Entry)};
  Trailer trailer{file_.size(), table.size(), file_.size() + bytes.size() + sizeof(Trailer), 0};
  trailer.checksum = table_checksum(header, bytes, trailer);
  file_.write(bytes.data(), bytes.size());
  file_.write(&trailer, sizeof trailer);
  file_.commit();
}

SectionFile::SectionFile(const std::filesystem::path& path, std::string_view magic, uint32_t version)
    : name_(path.string()), file_(path) {
  const std::span<const uint8_t> all = file_.bytes();
  Header header;
  if (all.size() < sizeof header || std::memcmp(all.data(), magic.data(), sizeof header.magic) != 0)
    fail<InputError>("{}: is no such file: it begins with other bytes", name_);
  std::memcpy(&header, all.data(), sizeof header);
  if (header.version != version)
    fail<InputError>(
        "{}: is of version {}, but only version {} can be read: make it again with this Millrace", name_,
        header.version, version);
  Trailer trailer;
  if (all.size() < sizeof header + sizeof trailer)
    fail<InputError>("{}: was cut short: it has {} bytes", name_, all.size());
  std::memcpy(&trailer, all.data() + all.size() - sizeof trailer, sizeof trailer);
  const uint64_t table_end = all.size() - sizeof trailer;
  if (trailer.file_size != all.size() || trailer.count > kMostSections || trailer.table > table_end ||
      table_end - trailer.table != trailer.count * sizeof(Entry))
    fail<InputError>("{}: is damaged or was cut short: its end is not that of such a file", name_);
  const std::span<const uint8_t> table = all.subspan(trailer.table, trailer.count * sizeof(Entry));
  if (table_checksum(header, table, trailer) != trailer.checksum)
    fail<InputError>("{}: is damaged: the checksum of its table is wrong", name_);
  struct stat status {};
  ::stat(path.c_str(), &status);
  identity_ = fmt::format("{:x} {} {} {}.{} {}", trailer.checksum, status.st_dev, status.st_ino,
                          status.st_mtim.tv_sec, status.st_mtim.tv_nsec, all.size());
  for (uint64_t i = 0; i < trailer.count; ++i) {
    Entry entry;
    std::memcpy(&entry, table.data() + i * sizeof entry, sizeof entry);
    if (entry.name[sizeof entry.name - 1] != 0 || entry.offset % kSectionPage != 0 ||
        entry.offset > trailer.table || entry.size > trailer.table - entry.offset)
      fail<InputError>("{}: is damaged: section {} lies outside of it", name_, i);
    sections_.push_back({entry.name, entry.offset, entry.size, entry.checksum});
  }
}

std::span<const uint8_t> SectionFile::bytes(std::string_view name, bool check) const {
  const auto at = std::find_if(sections_.begin(), sections_.end(),
                               [&](const Section& section) { return section.name == name; });
  if (at == sections_.end()) fail<InputError>("{}: lacks its section '{}'", name_, name);
  const std::span<const uint8_t> found = file_.bytes().subspan(at->offset, at->size);
  if (check && hash(found) != at->checksum)
    fail<InputError>("{}: is damaged: the checksum of its section '{}' is wrong", name_, name);
  return found;
}

std::string_view SectionFile::text(std::string_view name, bool check) const {
  const std::span<const uint8_t> found = bytes(name, check);
  return {reinterpret_cast<const char*>(found.data()), found.size()};
}

void SectionFile::verify() const {
  const std::span<const uint8_t> all = file_.bytes();
  Trailer trailer;
  std::memcpy(&trailer, all.data() + all.size() - sizeof trailer, sizeof trailer);
  std::vector<Section> order = sections_;
  std::sort(order.begin(), order.end(),
            [](const Section& a, const Section& b) { return a.offset < b.offset; });
  order.push_back({"", trailer.table, 0, 0});
  uint64_t end = sizeof(Header);
  for (const Section& section : order) {
    if (section.offset < end) fail<InputError>("{}: is damaged: its sections overlap", name_);
    const std::span<const uint8_t> gap = all.subspan(end, section.offset - end);
    if (std::any_of(gap.begin(), gap.end(), [](uint8_t byte) { return byte != 0; }))
      fail<InputError>("{}: is damaged: there is something between its sections", name_);
    if (!section.name.empty()) (void)bytes(section.name, true);
    end = section.offset + section.size;
  }
}

bool SectionFile::begins(const std::filesystem::path& path, std::string_view magic) {
  std::ifstream file(path, std::ios::binary);
  std::string found(magic.size(), '\0');
  return file.read(found.data(), static_cast<std::streamsize>(found.size())) && found == magic;
}

}  // namespace millrace
