#include "data/formats/tar_members.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/format.h"
#include "base/number_at.h"
#include "base/number_from.h"

namespace millrace::data {
namespace {

/// Text up to the first NUL.
std::string_view text(const uint8_t* field, size_t size) {
  const auto* chars = reinterpret_cast<const char*>(field);
  return {chars, ::strnlen(chars, size)};
}

/// Octal digits, or base 256 when the top bit is set (GNU, for sizes from 8 GiB). False when it is neither.
bool parse_tar_number(const uint8_t* field, size_t size, uint64_t& value) {
  value = 0;
  if (field[0] & 0x80) {
    if (field[0] != 0x80) return false;  // negative, or beyond 64 bits
    for (size_t i = 1; i < size; ++i) {
      if (value >> 55) return false;
      value = value << 8 | field[i];
    }
    return true;
  }
  size_t i = 0;
  while (i < size && field[i] == ' ') ++i;
  for (; i < size && field[i] >= '0' && field[i] <= '7'; ++i) {
    if (value >> 60) return false;
    value = value << 3 | static_cast<uint64_t>(field[i] - '0');
  }
  return i == size || field[i] == 0 || field[i] == ' ';
}

/// Four sums of 16 bits each, of every fourth pair of bytes.
uint64_t pair_sums(const uint8_t* bytes) {
  constexpr uint64_t even = 0x00ff00ff00ff00ff;
  const auto word = number_at<uint64_t>(bytes);
  return (word & even) + (word >> 8 & even);
}

uint64_t add_lanes(uint64_t sums) {
  return (sums & 0xffff) + (sums >> 16 & 0xffff) + (sums >> 32 & 0xffff) + (sums >> 48);
}

uint64_t byte_sum_8(const uint8_t* bytes) { return add_lanes(pair_sums(bytes)); }

/// Of a block: no lane overflows (64 · 2 · 255 < 2^16).
uint64_t byte_sum(const uint8_t* bytes) {
  uint64_t sums = 0;
  for (size_t i = 0; i < tar_block; i += 8) sums += pair_sums(bytes + i);
  return add_lanes(sums);
}

bool is_zero_block(const uint8_t* bytes) {
  return std::all_of(bytes, bytes + tar_block, [](uint8_t byte) { return byte == 0; });
}

/// PAX records: "length key=value\n", the length counting itself.
bool parse_pax(std::string_view records, TarExtension& next) {
  while (!records.empty()) {
    const size_t blank = std::min(records.find(' '), records.size());
    const size_t length = number_from<size_t>(records.substr(0, blank)).value_or(0);
    if (length > records.size() || length < blank + 3 || records[length - 1] != '\n') return false;
    const std::string_view record = records.substr(blank + 1, length - blank - 2);
    const size_t equals = record.find('=');
    if (equals == std::string_view::npos) return false;
    const std::string_view key = record.substr(0, equals), value = record.substr(equals + 1);
    if (key == "path") next.name = value;
    if (key == "size") {
      next.size = number_from<uint64_t>(value);
      if (!next.size || *next.size >> 60 != 0) return false;
    }
    records.remove_prefix(length);
  }
  return true;
}

std::string member_name(const uint8_t* header, const std::string& given) {
  if (!given.empty()) return given;
  std::string name(text(header, 100));
  // GNU's own magic ("ustar  ") uses the prefix field for other things.
  if (std::memcmp(header + 257, "ustar", 6) == 0)
    if (const std::string_view prefix = text(header + 345, 155); !prefix.empty())
      name = fmt::format("{}/{}", prefix, name);
  return name;
}

}  // namespace

bool is_tar_header(std::span<const uint8_t> header) {
  if (header.size() < tar_block) return false;
  uint64_t stored = 0;
  if (!parse_tar_number(header.data() + 148, 8, stored)) return false;
  // The checksum field counts as spaces.
  const uint64_t sum = byte_sum(header.data()) - byte_sum_8(header.data() + 148) + 8 * ' ';
  if (header[0] == 0 && sum == 8 * ' ') return false;
  if (stored == sum) return true;
  int64_t signed_sum = 8 * ' ';  // as old writers counted
  for (size_t i = 0; i < tar_block; ++i)
    if (i < 148 || i >= 156) signed_sum += static_cast<int8_t>(header[i]);
  return static_cast<int64_t>(stored) == signed_sum;
}

TarHeaders::What TarHeaders::header(std::span<const uint8_t> bytes, uint64_t at, TarMember& member) {
  const uint8_t* header = bytes.data();
  if (is_zero_block(header)) return What::end_mark;
  uint64_t size = 0;
  if (!is_tar_header(bytes) || !parse_tar_number(header + 124, 12, size))
    fail<InputError>("{}: damaged tar header at byte {} (after {}); copy the file again", path_, at, last_);
  type_ = static_cast<char>(header[156]);
  const bool extension = type_ == 'x' || type_ == 'g' || type_ == 'L' || type_ == 'K';
  if (!extension && next_.size) size = *next_.size;
  // Links and folders may carry a size but have no data.
  if (type_ >= '1' && type_ <= '6') size = 0;
  member.name = extension ? "an extension header" : member_name(header, next_.name);
  member.offset = at + tar_block;
  member.size = size;
  if (extension) return What::extension;
  if (type_ == 'S')
    fail<InputError>(
        "{}: {} is stored as a sparse file, which is not read here; pack the tar without --sparse", path_,
        member.name);
  member.folder = type_ == '5' || (type_ != '1' && type_ != '2' && member.name.ends_with('/'));
  member.regular = (type_ == '0' || type_ == 0 || type_ == '7') && !member.folder;
  last_ = member.name;
  next_ = {};
  return What::member;
}

void TarHeaders::extension(std::string_view data, uint64_t at) {
  if (type_ == 'L')
    next_.name = data.substr(0, data.find('\0'));
  else if (type_ == 'x' && !parse_pax(data, next_))
    fail<InputError>("{}: damaged PAX header at byte {}; copy the file again", path_, at);
}

namespace {

/// Bytes of a tar, wherever they are.
using ReadTar = std::function<Bytes(uint64_t offset, uint64_t size)>;

/// Goes through the members: with `end_mark` up to that, which must come, else to the end.
void walk(const std::string& path, const ReadTar& read, uint64_t all, bool end_mark,
          const std::function<bool(const TarMember&)>& visit) {
  TarHeaders headers(path);
  uint64_t at = 0, begin = 0;
  TarMember member;
  while (end_mark || at < all) {
    if (all - at < tar_block)
      fail<InputError>("{}: the tar is truncated after {} (at byte {}, no end mark); copy the file again",
                       path, headers.last(), at);
    const auto what = headers.header(read(at, tar_block).view(), at, member);
    if (what == TarHeaders::What::end_mark) return;
    const uint64_t size = member.size;
    if (size > all - member.offset)
      fail<InputError>(
          "{}: the tar is truncated: {} needs {} bytes at {}, the file ends at {}; copy the file again", path,
          member.name, size, member.offset, all);
    const uint64_t padded = size + tar_padding(size);
    const uint64_t next = padded > all - member.offset ? all : member.offset + padded;
    if (what == TarHeaders::What::extension) {
      headers.extension(read(member.offset, size).text(), at);
    } else {
      member.begin = begin;
      member.end = begin = next;
      if (!visit(member)) return;
    }
    at = next;
  }
}

}  // namespace

void for_each_tar_member(const RandomAccessFile& file, const std::function<bool(const TarMember&)>& visit) {
  walk(
      file.path(), [&](uint64_t offset, uint64_t size) { return file.read(offset, size); }, file.size(), true,
      visit);
}

void for_each_tar_member(const std::string& path, const Bytes& piece,
                         const std::function<bool(const TarMember&)>& visit) {
  const auto read = [&](uint64_t offset, uint64_t size) {
    return Bytes(piece.view().subspan(offset, size), nullptr);  // which lives as long as `piece`
  };
  walk(path, read, piece.size(), false, visit);
}

std::string tar_header(const std::string& name, uint64_t size) {
  if (name.size() > 100) fail<InputError>("{}: too long a name for a tar member (100 bytes)", name);
  std::string header(tar_block, '\0');
  const auto put = [&](size_t at, std::string_view value) { header.replace(at, value.size(), value); };
  put(0, name);
  put(100, "0000444");
  put(108, "0000000");
  put(116, "0000000");
  put(124, fmt::format("{:011o}", size));
  put(136, "00000000000");
  put(148, "        ");
  put(156, "0");
  put(257, std::string_view("ustar\00000", 8));
  uint64_t sum = 0;
  for (const char c : header) sum += static_cast<uint8_t>(c);
  put(148, fmt::format("{:06o}", sum));
  header[154] = '\0';
  header[155] = ' ';
  return header;
}

}  // namespace millrace::data
