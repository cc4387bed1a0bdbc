#include "data/codecs/pictures/netpbm.h"

#include <cstring>

#include "base/format.h"

namespace millrace::data {
namespace {

bool is_space(uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// The next number of the header (comments skipped), or -1.
int64_t read_number(std::span<const uint8_t> bytes, size_t& at) {
  while (at < bytes.size() && (is_space(bytes[at]) || bytes[at] == '#')) {
    if (bytes[at] == '#')
      while (at < bytes.size() && bytes[at] != '\n') ++at;
    else
      ++at;
  }
  int64_t value = -1;
  for (; at < bytes.size() && bytes[at] >= '0' && bytes[at] <= '9' && value < 1'000'000; ++at)
    value = std::max<int64_t>(value, 0) * 10 + (bytes[at] - '0');
  return value;
}

}  // namespace

bool is_netpbm(std::span<const uint8_t> bytes) {
  if (bytes.size() < 8 || bytes[0] != 'P' || (bytes[1] != '5' && bytes[1] != '6') || !is_space(bytes[2]))
    return false;
  size_t at = 2;
  for (int i = 0; i < 3; ++i)
    if (read_number(bytes, at) < 0) return false;
  return at < bytes.size() && is_space(bytes[at]);
}

std::string decode_netpbm(std::span<const uint8_t> bytes, Picture& picture) {
  if (bytes.size() < 2 || bytes[0] != 'P' || (bytes[1] != '5' && bytes[1] != '6'))
    return "not a binary PGM or PPM file";
  size_t at = 2;
  const int64_t width = read_number(bytes, at), height = read_number(bytes, at), top = read_number(bytes, at);
  if (width < 1 || height < 1 || width > 65535 || height > 65535 || width * height > max_pixels)
    return "its Netpbm header is damaged or the picture is too large";
  if (top != 255) return "its maximum value is not 255";
  if (at >= bytes.size() || !is_space(bytes[at])) return "its Netpbm header is damaged";
  ++at;
  picture.width = static_cast<int>(width);
  picture.height = static_cast<int>(height);
  picture.channels = bytes[1] == '5' ? 1 : 3;
  const size_t want = static_cast<size_t>(width * height) * picture.channels;
  if (bytes.size() - at < want)
    return fmt::format("truncated: {} of {} pixel bytes", bytes.size() - at, want);
  picture.pixels.assign(bytes.begin() + at, bytes.begin() + at + want);
  return {};
}

std::vector<uint8_t> encode_netpbm(const Picture& picture) {
  const std::string header =
      fmt::format("P{}\n{} {}\n255\n", picture.channels == 1 ? 5 : 6, picture.width, picture.height);
  std::vector<uint8_t> bytes(header.begin(), header.end());
  bytes.insert(bytes.end(), picture.pixels.begin(), picture.pixels.end());
  return bytes;
}

}  // namespace millrace::data
