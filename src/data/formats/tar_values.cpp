#include "data/formats/tar_values.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/number_from.h"
#include "base/utf8.h"
#include "base/words.h"
#include "data/codecs/arrays/npy.h"
#include "data/codecs/arrays/tenbin.h"
#include "data/io/compression.h"

namespace millrace::data {
namespace {

constexpr uint64_t most_unpacked_member = uint64_t{1} << 30;

enum class Coding { raw, integer, text, json, msgpack, npy, npz, tenbin, pickle };
struct Known {
  ColumnKind kind = ColumnKind::bytes;
  Coding coding = Coding::raw;
};

const Known& known(std::string_view extension) {
  static const auto table = [] {
    std::map<std::string, Known, std::less<>> map;
    const auto add = [&](std::initializer_list<const char*> names, ColumnKind kind, Coding coding) {
      for (const char* name : names) map[name] = {kind, coding};
    };
    add({"cls", "cls2", "class", "count", "index", "inx", "id"}, ColumnKind::integer, Coding::integer);
    add({"txt", "text", "transcript"}, ColumnKind::text, Coding::text);
    add({"json", "jsn"}, ColumnKind::json, Coding::json);
    add({"mp", "msg"}, ColumnKind::json, Coding::msgpack);
    add({"npy"}, ColumnKind::array, Coding::npy);
    add({"npz"}, ColumnKind::array, Coding::npz);
    add({"ten", "tb"}, ColumnKind::array, Coding::tenbin);
    add({"pyd", "pickle", "pkl", "pth", "pt"}, ColumnKind::bytes, Coding::pickle);
    add({"jpg", "jpeg", "jpe", "jfif", "png", "apng", "ppm", "pgm", "pbm", "pnm", "webp", "gif", "bmp", "dib",
         "tif", "tiff", "jp2", "tga"},
        ColumnKind::picture, Coding::raw);
    add({"wav", "flac", "mp3", "ogg", "opus", "m4a"}, ColumnKind::audio, Coding::raw);
    return map;
  }();
  static const Known bytes;
  const std::string_view plain = without_compression(extension);
  const auto found = table.find(plain.substr(plain.rfind('.') + 1));  // npos + 1 == 0
  return found == table.end() ? bytes : found->second;
}

int64_t parse_integer(std::string_view extension, std::string_view text) {
  std::string_view digits = trimmed(text);
  if (digits.starts_with('+')) digits.remove_prefix(1);
  const std::optional<int64_t> value = number_from(digits);
  if (!value)
    fail<InputError>("holds no {} number ({}); write it as decimal digits",
                     extension.starts_with("cl") ? "class" : "whole",
                     value_text(std::string(text.substr(0, 40)), ColumnKind::text, 40));
  return *value;
}

/// nlohmann's reader calls itself for what is nested: input that nests deeply is found before.
void require_shallow_msgpack(std::span<const uint8_t> bytes) {
  constexpr size_t deepest = 200;
  std::vector<uint64_t> open;  // values still to come at each level
  size_t at = 0;
  const auto number = [&](size_t size) {
    uint64_t value = 0;
    if (bytes.size() - at < size) fail<InputError>("is damaged: msgpack that ends early");
    for (size_t i = 0; i < size; ++i) value = value << 8 | bytes[at++];
    return value;
  };
  const auto skip = [&](uint64_t size) {
    if (size > bytes.size() - at) fail<InputError>("is damaged: msgpack that ends early");
    at += size;
  };
  do {
    const auto byte = static_cast<uint8_t>(number(1));
    uint64_t inside = 0;
    if (byte >= 0x80 && byte <= 0x8f)
      inside = 2 * (byte & 15u);
    else if (byte >= 0x90 && byte <= 0x9f)
      inside = byte & 15u;
    else if (byte >= 0xa0 && byte <= 0xbf)
      skip(byte & 31u);
    else if (byte >= 0xc4 && byte <= 0xc6)
      skip(number(size_t{1} << (byte - 0xc4)));
    else if (byte >= 0xc7 && byte <= 0xc9)
      skip(number(size_t{1} << (byte - 0xc7)) + 1);
    else if (byte == 0xca)
      skip(4);
    else if (byte == 0xcb)
      skip(8);
    else if (byte >= 0xcc && byte <= 0xcf)
      skip(uint64_t{1} << (byte - 0xcc));
    else if (byte >= 0xd0 && byte <= 0xd3)
      skip(uint64_t{1} << (byte - 0xd0));
    else if (byte >= 0xd4 && byte <= 0xd8)
      skip((uint64_t{1} << (byte - 0xd4)) + 1);
    else if (byte >= 0xd9 && byte <= 0xdb)
      skip(number(size_t{1} << (byte - 0xd9)));
    else if (byte == 0xdc || byte == 0xdd)
      inside = number(byte == 0xdc ? 2 : 4);
    else if (byte == 0xde || byte == 0xdf)
      inside = 2 * number(byte == 0xde ? 2 : 4);
    if (!open.empty()) --open.back();
    if (inside > 0) open.push_back(inside);
    while (!open.empty() && open.back() == 0) open.pop_back();
    if (open.size() > deepest) fail<InputError>("is nested more than {} deep", deepest);
  } while (!open.empty());
}

std::string msgpack_json(std::span<const uint8_t> bytes) {
  require_shallow_msgpack(bytes);
  try {
    return nlohmann::ordered_json::from_msgpack(bytes.begin(), bytes.end())
        .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  } catch (const nlohmann::json::exception& error) {
    fail<InputError>("is no msgpack ({})", error.what());
  }
}

Array ten_part(const Bytes& content, std::string_view part) {
  auto arrays = parse_tenbin(content.view());
  const auto names = tenbin_names(arrays);
  if (part.empty() && arrays.size() == 1) return std::move(arrays[0].second);
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] == part) return std::move(arrays[i].second);
  fail<InputError>("has no array '{}' (but {})", part, fmt::join(names, ", "));
}

std::vector<std::string> part_names(Coding coding, std::string_view extension, const Bytes& packed) {
  const Compression compression = compression_of(extension);
  const Bytes content = compression == Compression::none
                            ? packed
                            : Bytes(decompress(compression, packed.view(), most_unpacked_member));
  if (coding == Coding::npz) return npz_names(content.view());
  const auto arrays = parse_tenbin(content.view());
  return arrays.size() == 1 ? std::vector<std::string>() : tenbin_names(arrays);
}

}  // namespace

std::pair<std::string_view, std::string_view> split_path(std::string_view name) {
  const size_t slash = name.rfind('/');
  if (slash == std::string_view::npos) return {"", name};
  return {name.substr(0, slash), name.substr(slash + 1)};
}

bool split_key(std::string_view name, std::string_view& key, std::string& extension) {
  const std::string_view file = split_path(name).second;
  const size_t dot = file.find('.');
  if (dot == 0 || dot == std::string_view::npos || (file.starts_with("__") && file.ends_with("__")))
    return false;
  key = name.substr(0, name.size() - file.size() + dot);
  extension = lower_case(std::string(file.substr(dot + 1)));
  return true;
}

ColumnKind member_kind(std::string_view extension) { return known(extension).kind; }

std::vector<std::string> member_columns(const std::string& extension, const Bytes& content) {
  const Coding coding = known(extension).coding;
  std::vector<std::string> columns;
  if (coding == Coding::npz || coding == Coding::tenbin) try {
      for (const std::string& part : part_names(coding, extension, content))
        columns.push_back(fmt::format("{}.{}", extension, part));
    } catch (const InputError&) {
      // Reading the column will say what is wrong with it.
    }
  if (columns.empty()) columns.push_back(extension);
  return columns;
}

std::pair<std::string, std::string> split_column(std::string_view column) {
  // The extension is the shortest beginning that holds arrays by name; any other column is an extension as a
  // whole.
  for (size_t dot = column.find('.'); dot != std::string_view::npos; dot = column.find('.', dot + 1)) {
    std::string_view extension = column.substr(0, dot);
    const Coding coding = known(extension).coding;
    if (coding != Coding::npz && coding != Coding::tenbin) continue;
    // "npz.gz.x": the suffix belongs to the extension.
    const std::string_view rest = column.substr(dot + 1), next = rest.substr(0, rest.find('.'));
    const bool suffix = compression_of(extension) == Compression::none &&
                        compression_of("x." + std::string(next)) != Compression::none;
    if (suffix && next.size() == rest.size()) break;
    if (suffix) continue;
    return {std::string(extension), std::string(rest)};
  }
  return {std::string(column), ""};
}

Value decode_member(std::string_view extension, std::string_view part, const Bytes& content) {
  const Known& what = known(extension);
  if (what.coding == Coding::pickle)
    fail<InputError>(
        "is a Python pickle, which could run any code when it is read: refused; store it as .json, .npy or "
        ".mp");
  if (const Compression compression = compression_of(extension); compression != Compression::none)
    return decode_member(without_compression(extension), part,
                         Bytes(decompress(compression, content.view(), most_unpacked_member)));
  switch (what.coding) {
    case Coding::integer:
      return parse_integer(extension.substr(extension.rfind('.') + 1), content.text());
    case Coding::text:
      if (const size_t good = utf8_bytes(content.text()); good < content.size())
        fail<InputError>("is no UTF-8 text (at byte {})", good);
      return std::string(content.text());
    case Coding::json:
      if (!nlohmann::json::accept(content.text())) fail<InputError>("is no JSON");
      return std::string(content.text());
    case Coding::msgpack:
      return msgpack_json(content.view());
    case Coding::npy:
      return parse_npy(content.view());
    case Coding::npz:
      if (part.empty()) fail<InputError>("is no .npz file, or has no arrays");
      return parse_npz(content.view(), part);
    case Coding::tenbin:
      return ten_part(content, part);
    case Coding::raw:
    case Coding::pickle:
      break;
  }
  return content;
}

Value decode_member(std::string_view extension, std::string_view part, const Bytes& content,
                    ColumnKind kind) {
  Value value = decode_member(extension, part, content);
  if (kind != ColumnKind::real) return value;
  const auto& text = std::get<std::string>(value);
  const auto number = nlohmann::json::parse(text, nullptr, false);
  if (number.is_null()) return {};
  if (!number.is_number())
    fail<InputError>("holds {}, and the first samples' numbers",
                     value_text(std::string(trimmed(text).substr(0, 40)), ColumnKind::text, 40));
  return number.get<double>();
}

ColumnKind member_kind(std::string_view extension, std::span<const Bytes> contents) {
  const ColumnKind kind = member_kind(extension);
  if (known(extension).coding != Coding::json) return kind;
  constexpr double whole = 0x1p53;  // up to which a double holds each
  bool numbers = false;
  for (const Bytes& content : contents) {
    try {
      const Value value = decode_member(extension, "", content);
      const auto json = nlohmann::json::parse(std::get<std::string>(value), nullptr, false);
      if (json.is_null()) continue;
      if (!json.is_number() || (json.is_number_integer() && std::abs(json.get<double>()) > whole))
        return kind;
      numbers = true;
    } catch (const InputError&) {
      return kind;  // whoever reads it hears of it
    }
  }
  return numbers ? ColumnKind::real : kind;
}

}  // namespace millrace::data
