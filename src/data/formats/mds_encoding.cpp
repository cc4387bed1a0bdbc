#include <cstring>

#include "base/format.h"
#include "base/number_at.h"
#include "base/number_from.h"
#include "base/words.h"
#include "data/formats/content.h"
#include "data/formats/mds.h"

namespace millrace::data {
namespace {

/// The codes of element types in an array whose type is not fixed: its bits, and 0 unsigned, 1 signed, 2
/// floating.
std::optional<NumpyType> type_of_code(uint8_t code) {
  const int size = code / 8, kind = code % 8;
  const bool known = kind <= 2 && code % 8 == kind && (size == 1 || size == 2 || size == 4 || size == 8) &&
                     !(kind == 2 && size == 1);
  if (!known) return std::nullopt;
  return NumpyType{"uif"[kind], size, false};
}

std::vector<int64_t> parse_shape(std::string_view text, std::string_view where, std::string_view name) {
  std::vector<int64_t> shape;
  for (const std::string& part : split(text)) {
    const std::optional<int64_t> size = number_from(part);
    if (!size || *size < 1)
      fail<InputError>("{}: the encoding '{}' has no shape as in ndarray:float32:2,3", where, name);
    shape.push_back(*size);
  }
  return shape;
}

template <typename T>
T number_in(std::string_view text, const std::string& where) {
  const std::optional<T> number = number_from<T>(text);
  if (!number)
    fail<InputError>("{}: is no number of 64 bits, although it is encoded as one: damaged, or too large",
                     where);
  return *number;
}

/// u32 width, height, size of the mode's name; the name; rows.
Pixels decode_pixels(const Bytes& bytes, const std::string& where) {
  const uint32_t name_size = bytes.size() < 12 ? 0 : number_at<uint32_t>(bytes.data() + 8);
  if (bytes.size() < 12 || name_size > bytes.size() - 12)
    fail<InputError>("{}: the picture's header is cut off: damaged", where);
  const uint64_t width = number_at<uint32_t>(bytes.data()), height = number_at<uint32_t>(bytes.data() + 4);
  const std::string_view mode = bytes.text().substr(12, name_size);
  if (mode != "RGB" && mode != "L")
    fail<InputError>("{}: pictures of Pillow's mode '{}' are not read here; store them as RGB or L", where,
                     mode);
  const uint64_t channels = mode == "L" ? 1 : 3, size = bytes.size() - 12 - name_size;
  if (width == 0 || height == 0 || width > INT32_MAX || height > INT32_MAX ||
      size % (width * channels) != 0 || size / (width * channels) != height)
    fail<InputError>("{}: a picture of {}x{} in {} bytes: damaged", where, width, height, size);
  return {static_cast<int>(height), static_cast<int>(width), static_cast<int>(channels),
          bytes.part(12 + name_size, size)};
}

}  // namespace

MdsEncoding::MdsEncoding(std::string name, std::string_view where) : name_(std::move(name)) {
  const std::string_view text = name_;
  if (text == "pkl")
    fail<InputError>(
        "{}: is encoded as pkl: reading Python's pickle runs whatever code the file brings, so that it is "
        "refused "
        "here; write the data set again with json, bytes or ndarray",
        where);
  if (text == "bytes" || text == "str" || text == "json" || text == "str_decimal") {
    form_ = text == "bytes" ? Form::bytes : Form::text;
    kind_ = text == "bytes" ? ColumnKind::bytes : text == "json" ? ColumnKind::json : ColumnKind::text;
  } else if (text == "jpeg" || text == "png" || text == "pil") {
    form_ = text == "pil" ? Form::pixels : Form::bytes;
    kind_ = ColumnKind::picture;
  } else if (text == "str_int" || text == "str_float") {
    form_ = Form::number_text;
    kind_ = text == "str_int" ? ColumnKind::integer : ColumnKind::real;
  } else if (text == "ndarray" || text.starts_with("ndarray:")) {
    form_ = Form::array;
    kind_ = ColumnKind::array;
    const size_t first = text.find(':'), second = text.find(':', first + 1);
    if (first != text.npos && first + 1 < text.size())
      type_ =
          parse_numpy_type(text.substr(first + 1, second == text.npos ? second : second - first - 1), where);
    if (first != text.npos && second != text.npos) shape_ = parse_shape(text.substr(second + 1), where, text);
    if (type_ && shape_) size_ = numpy_bytes(*type_, *shape_, where);
  } else {
    form_ = Form::number;
    const bool known =
        text == "int" || text.starts_with("int") || text.starts_with("uint") || text.starts_with("float");
    if (!known)
      fail<InputError>(
          "{}: the encoding '{}' is not read here; read are bytes, str, json, int, int8 to uint64, float16 "
          "to "
          "float64, str_int, str_float, str_decimal, jpeg, png, pil and ndarray",
          where, text);
    type_ = text == "int" ? NumpyType{'i', 8, false} : parse_numpy_type(text, where);
    kind_ = type_->kind == 'f' ? ColumnKind::real : ColumnKind::integer;
    size_ = static_cast<uint64_t>(type_->size);
  }
}

Value MdsEncoding::decode(const Bytes& bytes, const std::string& where) const {
  switch (form_) {
    case Form::bytes:
      return bytes;
    case Form::text:
      if (!is_utf8(bytes.text())) fail<InputError>("{}: is no UTF-8: damaged", where);
      return std::string(bytes.text());
    case Form::pixels:
      return decode_pixels(bytes, where);
    case Form::array:
      return decode_array(bytes, where);
    case Form::number_text:
      if (kind_ == ColumnKind::real) return number_in<double>(bytes.text(), where);
      return number_in<int64_t>(bytes.text(), where);
    default: {
      const Array number = array_from_numpy(*type_, {}, bytes.view(), where);
      if (kind_ == ColumnKind::real) return number.at(0);
      return number.int_at(0);
    }
  }
}

/// [a byte of the element type] [rank << 2 | log2 of a size's bytes, sizes] elements; the parts that are
/// fixed are not there.
Value MdsEncoding::decode_array(const Bytes& bytes, const std::string& where) const {
  size_t at = 0;
  const auto need = [&](size_t count) {
    if (count > bytes.size() - at) fail<InputError>("{}: the array's header is cut off: damaged", where);
  };
  std::optional<NumpyType> type = type_;
  if (!type) {
    need(1);
    type = type_of_code(bytes.data()[at++]);
    if (!type)
      fail<InputError>("{}: the array's element type is {}, which is none: damaged", where, bytes.data()[0]);
  }
  std::vector<int64_t> shape;
  if (shape_) {
    shape = *shape_;
  } else {
    need(1);
    const int rank = bytes.data()[at] >> 2, width = 1 << (bytes.data()[at] & 3);
    ++at;
    need(static_cast<size_t>(rank * width));
    for (int d = 0; d < rank; ++d, at += static_cast<size_t>(width)) {
      uint64_t size = 0;
      std::memcpy(&size, bytes.data() + at, static_cast<size_t>(width));
      if (size >> 47) fail<InputError>("{}: an array with an axis of {}: damaged", where, size);
      shape.push_back(static_cast<int64_t>(size));
    }
  }
  return array_from_numpy(*type, shape, bytes.view().subspan(at), where);
}

}  // namespace millrace::data
