#include "base/format.h"
#include "data/codecs/sounds/sound.h"
#include "data/table/contents.h"

namespace millrace::data {
namespace {

std::string quoted(std::string_view text, size_t width) {
  std::string out = "\"";
  for (const char c : text) {
    if (out.size() >= width) {
      // Not in the middle of a character.
      while (out.size() > 1 && (static_cast<unsigned char>(out.back()) & 0xc0) == 0x80) out.pop_back();
      if (static_cast<unsigned char>(out.back()) >= 0xc0) out.pop_back();
      return out + "…\"";
    }
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (byte < 0x20 || byte == 0x7f)
      out += fmt::format("\\x{:02x}", byte);
    else
      out += c;
  }
  return out + '"';
}

std::string array_text(const Array& array, size_t width) {
  std::string out = array.type().str();
  for (int64_t i = 0; i < array.count(); ++i) {
    if (out.size() >= width) return out + " …";
    out += array.dtype().is_int() ? fmt::format(" {}", array.int_at(i)) : fmt::format(" {:.6g}", array.at(i));
  }
  return out;
}

}  // namespace

const char* kind_name(ColumnKind kind) {
  static constexpr const char* names[] = {"integer", "real",    "text",  "json",
                                          "bytes",   "picture", "audio", "array"};
  return names[static_cast<size_t>(kind)];
}

std::string value_text(const Value& value, ColumnKind kind, size_t width) {
  struct Visitor {
    ColumnKind kind;
    size_t width;
    std::string operator()(std::monostate) const { return "-"; }
    std::string operator()(int64_t number) const { return std::to_string(number); }
    std::string operator()(double number) const { return fmt::format("{:.10g}", number); }
    std::string operator()(const std::string& text) const { return quoted(text, width); }
    std::string operator()(const Bytes& bytes) const {
      SoundInfo sound;
      if (kind == ColumnKind::audio && read_sound_info(bytes.view(), sound).empty())
        return fmt::format("audio, {:.2f} s of {}", static_cast<double>(sound.frames) / sound.rate,
                           sound_kind(sound.rate, sound.channels));
      return kind == ColumnKind::bytes ? fmt::format("{} bytes", bytes.size())
                                       : fmt::format("{}, {} bytes", kind_name(kind), bytes.size());
    }
    std::string operator()(const Pixels& pixels) const {
      return fmt::format("picture {}x{} {}", pixels.width, pixels.height,
                         pixels.channels == 1 ? "grey" : "colour");
    }
    std::string operator()(const Array& array) const { return array_text(array, width); }
  };
  return std::visit(Visitor{kind, width}, value);
}

StoredPicture stored_picture(const Value& value) {
  if (const auto* pixels = std::get_if<Pixels>(&value))
    return {pixels->bytes, pixels->height, pixels->width, pixels->channels};
  if (const auto* bytes = std::get_if<Bytes>(&value)) return StoredPicture(*bytes);
  return {};
}

}  // namespace millrace::data
