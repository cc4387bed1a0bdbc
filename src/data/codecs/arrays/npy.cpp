#include "data/codecs/arrays/npy.h"

#include <cstring>

#include "base/format.h"
#include "base/number_at.h"
#include "data/codecs/arrays/numpy_type.h"
#include "data/io/compression.h"

namespace millrace::data {
namespace {

constexpr std::string_view npy_magic = "\x93NUMPY";

struct Header {
  std::string descr;
  bool fortran = false;
  std::vector<int64_t> shape;
};

/// The header: a Python dict of a string, a bool and a tuple of numbers.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  Header parse() {
    Header header;
    int seen = 0;
    expect('{');
    while (!take('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr") {
        if (peek() == '[') fail<InputError>("holds records of several fields, which are not read here");
        header.descr = string();
      } else if (key == "fortran_order") {
        header.fortran = boolean_word();
      } else if (key == "shape") {
        header.shape = tuple();
      } else {
        damaged();
      }
      ++seen;
      if (!take(',') && peek() != '}') damaged();
    }
    if (seen != 3 || header.descr.empty()) damaged();
    return header;
  }

 private:
  [[noreturn]] static void damaged() { fail<InputError>("is damaged: its .npy header cannot be read"); }
  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c || at_ >= text_.size()) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) damaged();
  }
  std::string string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') damaged();
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) damaged();
    std::string value(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return value;
  }
  bool boolean_word() {
    peek();
    for (const auto& [word, value] : {std::pair{"True", true}, std::pair{"False", false}})
      if (text_.substr(at_).starts_with(word)) {
        at_ += std::strlen(word);
        return value;
      }
    damaged();
  }
  std::vector<int64_t> tuple() {
    std::vector<int64_t> sizes;
    expect('(');
    while (!take(')')) {
      int64_t size = 0;
      int digits = 0;
      for (peek(); at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9' && digits < 16;
           ++at_, ++digits)
        size = 10 * size + (text_[at_] - '0');
      if (digits == 0 || sizes.size() > 32) damaged();
      take('L');  // as Python 2 wrote
      sizes.push_back(size);
      if (!take(',') && peek() != ')') damaged();
    }
    return sizes;
  }

  std::string_view text_;
  size_t at_ = 0;
};

NumpyType number_type(const std::string& descr) {
  if (descr.find('O') != std::string::npos)
    fail<InputError>("holds Python objects, which could run any code when they are read: refused");
  NumpyType type{0, 0};
  if (descr.size() == 3 && (descr[0] == '<' || descr[0] == '|' || descr[0] == '='))
    type = {descr[1], descr[2] - '0'};
  if (!type.known())
    fail<InputError>(
        "holds elements of NumPy's type '{}'; read are little-endian floats, integers and bools ('<f4', "
        "'|u1' …)",
        descr.substr(0, 20));
  return type;
}

/// A file in a zip.
struct ZipEntry {
  std::string name;
  uint64_t method = 0, packed = 0, size = 0, header = 0;
};

[[noreturn]] void damaged_zip(const char* why) { fail<InputError>("is damaged: no whole zip ({})", why); }

/// zip64 writes sizes that do not fit into 32 bits into an extra field, those and only those, in order.
void read_zip64(std::span<const uint8_t> extra, ZipEntry& entry) {
  for (size_t at = 0; extra.size() - at >= 4;) {
    const uint64_t id = number_at<uint16_t>(&extra[at]), size = number_at<uint16_t>(&extra[at + 2]);
    at += 4;
    if (size > extra.size() - at) damaged_zip("an extra field");
    if (id == 1) {
      size_t field = at;
      for (uint64_t* value : {&entry.size, &entry.packed, &entry.header}) {
        if (*value != 0xffffffff) continue;
        if (at + size - field < 8) damaged_zip("a zip64 field");
        *value = number_at<uint64_t>(&extra[field]);
        field += 8;
      }
    }
    at += size;
  }
}

std::vector<ZipEntry> zip_entries(std::span<const uint8_t> bytes) {
  // The end record is the last thing in the file; a comment of up to 64 kB may follow.
  constexpr size_t end_size = 22, entry_size = 46;
  if (bytes.size() < end_size) damaged_zip("too short");
  size_t end = bytes.size() - end_size;
  const size_t lowest = end > 65535 ? end - 65535 : 0;
  while (number_at<uint32_t>(&bytes[end]) != 0x06054b50) {
    if (end == lowest) damaged_zip("no directory");
    --end;
  }
  size_t at = number_at<uint32_t>(&bytes[end + 16]);
  const uint64_t count = number_at<uint16_t>(&bytes[end + 10]);
  std::vector<ZipEntry> entries;
  for (uint64_t i = 0; i < count; ++i) {
    if (at > end || end - at < entry_size || number_at<uint32_t>(&bytes[at]) != 0x02014b50)
      damaged_zip("its directory");
    const size_t name = number_at<uint16_t>(&bytes[at + 28]), extra = number_at<uint16_t>(&bytes[at + 30]),
                 comment = number_at<uint16_t>(&bytes[at + 32]);
    if (end - at - entry_size < name + extra + comment) damaged_zip("its directory");
    ZipEntry entry;
    entry.name.assign(reinterpret_cast<const char*>(&bytes[at]) + entry_size, name);
    entry.method = number_at<uint16_t>(&bytes[at + 10]);
    entry.packed = number_at<uint32_t>(&bytes[at + 20]);
    entry.size = number_at<uint32_t>(&bytes[at + 24]);
    entry.header = number_at<uint32_t>(&bytes[at + 42]);
    read_zip64(bytes.subspan(at + entry_size + name, extra), entry);
    entries.push_back(std::move(entry));
    at += entry_size + name + extra + comment;
  }
  return entries;
}

std::vector<uint8_t> zip_content(std::span<const uint8_t> bytes, const ZipEntry& entry) {
  constexpr size_t local_size = 30;
  constexpr uint64_t most = uint64_t{4} << 30;
  if (entry.header > bytes.size() || bytes.size() - entry.header < local_size ||
      number_at<uint32_t>(&bytes[entry.header]) != 0x04034b50)
    damaged_zip("a member's header");
  const size_t skip = local_size + number_at<uint16_t>(&bytes[entry.header + 26]) +
                      number_at<uint16_t>(&bytes[entry.header + 28]);
  const uint64_t left = bytes.size() - entry.header;
  if (skip > left || entry.packed > left - skip) damaged_zip("a member is cut off");
  const auto packed = bytes.subspan(entry.header + skip, entry.packed);
  if (entry.method == 0) return {packed.begin(), packed.end()};
  if (entry.method != 8) fail<InputError>("is packed by zip's method {}; read are 0 and 8", entry.method);
  if (entry.size > most) fail<InputError>("holds an array of over 4 GB");
  return inflate_raw(packed, entry.size);
}

std::string_view array_name(std::string_view name) {
  return name.ends_with(".npy") ? name.substr(0, name.size() - 4) : name;
}

}  // namespace

Array parse_npy(std::span<const uint8_t> bytes) {
  if (bytes.size() < 10 || std::memcmp(bytes.data(), npy_magic.data(), npy_magic.size()) != 0)
    fail<InputError>("is no .npy file");
  const int major = bytes[6];
  if (major < 1 || major > 3) fail<InputError>("is of .npy version {}; versions 1 to 3 are read", major);
  const size_t begin = major == 1 ? 10 : 12;
  if (bytes.size() < begin) fail<InputError>("is cut off; copy it again");
  const uint64_t length =
      major == 1 ? uint64_t{number_at<uint16_t>(&bytes[8])} : number_at<uint32_t>(&bytes[8]);
  if (length > bytes.size() - begin) fail<InputError>("is cut off in its header; copy it again");
  const Header header =
      HeaderParser({reinterpret_cast<const char*>(bytes.data()) + begin, static_cast<size_t>(length)})
          .parse();
  return number_array(number_type(header.descr), header.shape, bytes.subspan(begin + length), header.fortran);
}

std::vector<uint8_t> encode_npy(const Array& array) {
  const Array written = array.dtype() == bf16 ? array.converted(f32) : array;
  std::string shape;
  for (const Dim& dim : written.shape()) shape += fmt::format("{}{}", shape.empty() ? "" : ", ", dim.size());
  if (written.shape().rank() == 1) shape += ',';
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                   numpy_type_of(written.dtype(), "an array").descr(), shape);
  header.append(63 - (npy_magic.size() + 4 + header.size()) % 64, ' ');
  header += '\n';
  std::vector<uint8_t> out(npy_magic.begin(), npy_magic.end());
  out.insert(out.end(),
             {1, 0, static_cast<uint8_t>(header.size()), static_cast<uint8_t>(header.size() >> 8)});
  out.insert(out.end(), header.begin(), header.end());
  const auto* content = static_cast<const uint8_t*>(written.data());
  if (written.count() > 0) out.insert(out.end(), content, content + written.bytes());
  return out;
}

std::vector<std::string> npz_names(std::span<const uint8_t> bytes) {
  std::vector<std::string> names;
  for (const ZipEntry& entry : zip_entries(bytes)) names.emplace_back(array_name(entry.name));
  return names;
}

Array parse_npz(std::span<const uint8_t> bytes, std::string_view name) {
  for (const ZipEntry& entry : zip_entries(bytes))
    if (array_name(entry.name) == name) return parse_npy(zip_content(bytes, entry));
  fail<InputError>("has no array '{}'", name);
}

}  // namespace millrace::data
