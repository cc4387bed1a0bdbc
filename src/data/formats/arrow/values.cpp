// Arrow's arrays as columns of ours.
#include <arrow/util/float16.h>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "data/formats/arrow/adaptors.h"

namespace millrace::data::arrow_module {
namespace {

using arrow::Type;

constexpr int64_t day = 86'400'000'000;  // in microseconds

const arrow::DataType& plain(const arrow::DataType& type) {
  if (type.id() == Type::EXTENSION)
    return plain(*static_cast<const arrow::ExtensionType&>(type).storage_type());
  if (type.id() == Type::DICTIONARY)
    return plain(*static_cast<const arrow::DictionaryType&>(type).value_type());
  return type;
}

/// The element type of arrays of numbers of this type; false for all else.
bool element_of(const arrow::DataType& type, DType& element) {
  switch (type.id()) {
    case Type::BOOL:
      element = boolean;
      return true;
    case Type::INT8:
      element = i8;
      return true;
    case Type::UINT8:
      element = u8;
      return true;
    case Type::INT16:
    case Type::UINT16:
    case Type::INT32:
      element = i32;
      return true;
    case Type::UINT32:
    case Type::INT64:
    case Type::UINT64:
      element = i64;
      return true;
    case Type::HALF_FLOAT:
      element = f16;
      return true;
    case Type::FLOAT:
      element = f32;
      return true;
    case Type::DOUBLE:
      element = f64;
      return true;
    default:
      return false;
  }
}

std::shared_ptr<arrow::DataType> list_element(const arrow::DataType& type) {
  if (type.id() == Type::LIST || type.id() == Type::LARGE_LIST || type.id() == Type::FIXED_SIZE_LIST)
    return static_cast<const arrow::BaseListType&>(type).value_type();
  return nullptr;
}

bool is_text(const arrow::DataType& type) {
  return type.id() == Type::STRING || type.id() == Type::LARGE_STRING;
}

int64_t checked_product(int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product))
    throw std::runtime_error("a time lies too far away for microseconds");
  return product;
}

int64_t floor_thousandth(int64_t value) { return value / 1000 - (value % 1000 < 0); }

int64_t microseconds(int64_t value, arrow::TimeUnit::type unit) {
  switch (unit) {
    case arrow::TimeUnit::SECOND:
      return checked_product(value, 1'000'000);
    case arrow::TimeUnit::MILLI:
      return checked_product(value, 1000);
    case arrow::TimeUnit::MICRO:
      return value;
    default:
      return floor_thousandth(value);
  }
}

double half_to_double(uint16_t bits) {
  return static_cast<double>(arrow::util::Float16::FromBits(bits).ToFloat());
}

class Appender {
 public:
  explicit Appender(ColumnValues& out) : out_(out) {}

  void append(const std::shared_ptr<arrow::Array>& array) {
    check(array->ValidateFull());
    const size_t before = out_.size();
    values(array);
    if (array->null_count() == 0 && out_.present.empty()) return;
    out_.present.resize(before, 1);
    for (int64_t i = 0; i < array->length(); ++i) out_.present.push_back(array->IsValid(i));
  }

 private:
  template <typename ArrayType, typename Convert>
  void integers(const std::shared_ptr<arrow::Array>& array, Convert&& convert) {
    const auto& typed = static_cast<const ArrayType&>(*array);
    for (int64_t i = 0; i < typed.length(); ++i)
      out_.integers.push_back(typed.IsValid(i) ? convert(typed.Value(i)) : 0);
  }
  template <typename ArrayType, typename Convert>
  void reals(const std::shared_ptr<arrow::Array>& array, Convert&& convert) {
    const auto& typed = static_cast<const ArrayType&>(*array);
    for (int64_t i = 0; i < typed.length(); ++i)
      out_.reals.push_back(typed.IsValid(i) ? convert(typed.Value(i)) : 0);
  }
  template <typename ArrayType>
  void contents(const std::shared_ptr<arrow::Array>& array) {
    const auto& typed = static_cast<const ArrayType&>(*array);
    for (int64_t i = 0; i < typed.length(); ++i)
      out_.contents.push_back(typed.IsValid(i) ? std::string_view(typed.GetView(i)) : std::string_view());
    out_.owners.push_back(array);
  }
  template <typename ArrayType>
  void decimals(const std::shared_ptr<arrow::Array>& array) {
    const auto& typed = static_cast<const ArrayType&>(*array);
    for (int64_t i = 0; i < typed.length(); ++i)
      out_.reals.push_back(typed.IsValid(i) ? std::strtod(typed.FormatValue(i).c_str(), nullptr) : 0);
  }

  void values(const std::shared_ptr<arrow::Array>& array) {
    const auto same = [](auto value) { return static_cast<int64_t>(value); };
    const auto real = [](auto value) { return static_cast<double>(value); };
    const auto unit = [&](const auto& type) {
      return [u = type.unit()](int64_t value) { return microseconds(value, u); };
    };
    const arrow::DataType& type = *array->type();
    switch (type.id()) {
      case Type::NA:
        out_.contents.resize(out_.contents.size() + static_cast<size_t>(array->length()));
        break;
      case Type::BOOL:
        integers<arrow::BooleanArray>(array, same);
        break;
      case Type::INT8:
        integers<arrow::Int8Array>(array, same);
        break;
      case Type::INT16:
        integers<arrow::Int16Array>(array, same);
        break;
      case Type::INT32:
        integers<arrow::Int32Array>(array, same);
        break;
      case Type::INT64:
        integers<arrow::Int64Array>(array, same);
        break;
      case Type::UINT8:
        integers<arrow::UInt8Array>(array, same);
        break;
      case Type::UINT16:
        integers<arrow::UInt16Array>(array, same);
        break;
      case Type::UINT32:
        integers<arrow::UInt32Array>(array, same);
        break;
      case Type::UINT64:
        integers<arrow::UInt64Array>(array, checked_unsigned);
        break;
      case Type::HALF_FLOAT:
        reals<arrow::HalfFloatArray>(array, half_to_double);
        break;
      case Type::FLOAT:
        reals<arrow::FloatArray>(array, real);
        break;
      case Type::DOUBLE:
        reals<arrow::DoubleArray>(array, real);
        break;
      case Type::DECIMAL32:
        decimals<arrow::Decimal32Array>(array);
        break;
      case Type::DECIMAL64:
        decimals<arrow::Decimal64Array>(array);
        break;
      case Type::DECIMAL128:
        decimals<arrow::Decimal128Array>(array);
        break;
      case Type::DECIMAL256:
        decimals<arrow::Decimal256Array>(array);
        break;
      case Type::DATE32:
        integers<arrow::Date32Array>(array, [](int64_t value) { return checked_product(value, day); });
        break;
      case Type::DATE64:
        integers<arrow::Date64Array>(array, [](int64_t value) { return checked_product(value, 1000); });
        break;
      case Type::TIMESTAMP:
        integers<arrow::TimestampArray>(array, unit(static_cast<const arrow::TimestampType&>(type)));
        break;
      case Type::TIME32:
        integers<arrow::Time32Array>(array, unit(static_cast<const arrow::Time32Type&>(type)));
        break;
      case Type::TIME64:
        integers<arrow::Time64Array>(array, unit(static_cast<const arrow::Time64Type&>(type)));
        break;
      case Type::DURATION:
        integers<arrow::DurationArray>(array, unit(static_cast<const arrow::DurationType&>(type)));
        break;
      case Type::STRING:
      case Type::BINARY:
        contents<arrow::BinaryArray>(array);
        break;
      case Type::LARGE_STRING:
      case Type::LARGE_BINARY:
        contents<arrow::LargeBinaryArray>(array);
        break;
      case Type::STRING_VIEW:
      case Type::BINARY_VIEW:
        contents<arrow::BinaryViewArray>(array);
        break;
      case Type::FIXED_SIZE_BINARY:
        contents<arrow::FixedSizeBinaryArray>(array);
        break;
      case Type::EXTENSION:
        values(static_cast<const arrow::ExtensionArray&>(*array).storage());
        break;
      case Type::DICTIONARY:
        dictionary(static_cast<const arrow::DictionaryArray&>(*array));
        break;
      case Type::LIST:
        lists(static_cast<const arrow::ListArray&>(*array));
        break;
      case Type::LARGE_LIST:
        lists(static_cast<const arrow::LargeListArray&>(*array));
        break;
      case Type::FIXED_SIZE_LIST:
        lists(static_cast<const arrow::FixedSizeListArray&>(*array));
        break;
      default:
        throw std::runtime_error("a column of the type " + type.ToString() + " cannot be used");
    }
  }

  static int64_t checked_unsigned(uint64_t value) {
    if (value > static_cast<uint64_t>(INT64_MAX))
      throw std::runtime_error("a whole number is beyond 2^63 - 1");
    return static_cast<int64_t>(value);
  }

  /// Each entry as the value that it stands for; one whose value is missing is missing.
  void dictionary(const arrow::DictionaryArray& array) {
    ColumnValues words;
    words.kind = out_.kind;
    Appender(words).append(array.dictionary());
    out_.owners.insert(out_.owners.end(), words.owners.begin(), words.owners.end());
    const size_t before = out_.size();
    for (int64_t i = 0; i < array.length(); ++i) {
      const bool valid = array.IsValid(i);
      const auto k = valid ? static_cast<size_t>(array.GetValueIndex(i)) : 0;
      if (valid && !words.has(k)) throw std::runtime_error("a dictionary holds nulls");
      if (out_.kind == ColumnKind::integer)
        out_.integers.push_back(valid ? words.integers[k] : 0);
      else if (out_.kind == ColumnKind::real)
        out_.reals.push_back(valid ? words.reals[k] : 0);
      else
        out_.contents.push_back(valid ? words.contents[k] : std::string_view());
    }
    if (out_.size() != before + static_cast<size_t>(array.length()))
      throw std::runtime_error("a damaged dictionary");
  }

  /// Missing numbers in lists of reals are NaN; in lists of whole numbers they cannot be held. What lies
  /// behind a missing list is nobody's.
  template <typename ListType>
  void lists(const ListType& array) {
    if (array.values()->type_id() == Type::STRING)
      return texts(array, static_cast<const arrow::StringArray&>(*array.values()));
    if (array.values()->type_id() == Type::LARGE_STRING)
      return texts(array, static_cast<const arrow::LargeStringArray&>(*array.values()));
    if (!element_of(*array.values()->type(), out_.element)) throw std::runtime_error("a list of no numbers");
    const auto bytes = std::make_shared<std::string>();
    std::vector<size_t> ends;
    for (int64_t i = 0; i < array.length(); ++i) {
      if (array.IsValid(i)) numbers(*array.values(), array.value_offset(i), array.value_length(i), *bytes);
      ends.push_back(bytes->size());
    }
    hand_over(bytes, ends);
  }

  /// Lists of texts, in JSON.
  template <typename ListType, typename TextType>
  void texts(const ListType& array, const TextType& words) {
    const auto bytes = std::make_shared<std::string>();
    std::vector<size_t> ends;
    for (int64_t i = 0; i < array.length(); ++i) {
      auto list = nlohmann::json::array();
      const int64_t begin = array.IsValid(i) ? array.value_offset(i) : 0,
                    end = array.IsValid(i) ? begin + array.value_length(i) : 0;
      for (int64_t k = begin; k < end; ++k)
        list.push_back(words.IsValid(k) ? nlohmann::json(words.GetString(k)) : nlohmann::json());
      *bytes += list.dump();
      ends.push_back(bytes->size());
    }
    hand_over(bytes, ends);
  }

  /// Pieces of `bytes`, each to the end that is given.
  void hand_over(const std::shared_ptr<std::string>& bytes, const std::vector<size_t>& ends) {
    size_t begin = 0;
    for (const size_t end : ends) {
      out_.contents.push_back(std::string_view(*bytes).substr(begin, end - begin));
      begin = end;
    }
    out_.owners.push_back(bytes);
  }

  template <typename To, typename ArrayType>
  void put(const arrow::Array& array, int64_t begin, int64_t count, std::string& bytes) {
    const auto& typed = static_cast<const ArrayType&>(array);
    for (int64_t i = begin; i < begin + count; ++i) {
      To value{};
      if (typed.IsNull(i)) {
        if (out_.element.is_float())
          value = out_.element == f16 ? static_cast<To>(0x7e00) : std::numeric_limits<To>::quiet_NaN();
        else
          throw std::runtime_error("a list of whole numbers holds nulls");
      } else if constexpr (std::is_same_v<ArrayType, arrow::UInt64Array>) {
        value = checked_unsigned(typed.Value(i));
      } else {
        value = static_cast<To>(typed.Value(i));
      }
      bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
  }

  void numbers(const arrow::Array& a, int64_t begin, int64_t count, std::string& bytes) {
    switch (a.type_id()) {
      case Type::BOOL:
        return put<uint8_t, arrow::BooleanArray>(a, begin, count, bytes);
      case Type::INT8:
        return put<int8_t, arrow::Int8Array>(a, begin, count, bytes);
      case Type::UINT8:
        return put<uint8_t, arrow::UInt8Array>(a, begin, count, bytes);
      case Type::INT16:
        return put<int32_t, arrow::Int16Array>(a, begin, count, bytes);
      case Type::UINT16:
        return put<int32_t, arrow::UInt16Array>(a, begin, count, bytes);
      case Type::INT32:
        return put<int32_t, arrow::Int32Array>(a, begin, count, bytes);
      case Type::UINT32:
        return put<int64_t, arrow::UInt32Array>(a, begin, count, bytes);
      case Type::INT64:
        return put<int64_t, arrow::Int64Array>(a, begin, count, bytes);
      case Type::UINT64:
        return put<int64_t, arrow::UInt64Array>(a, begin, count, bytes);
      case Type::HALF_FLOAT:
        return put<uint16_t, arrow::HalfFloatArray>(a, begin, count, bytes);
      case Type::FLOAT:
        return put<float, arrow::FloatArray>(a, begin, count, bytes);
      default:
        return put<double, arrow::DoubleArray>(a, begin, count, bytes);
    }
  }

  ColumnValues& out_;
};

}  // namespace

bool kind_of(const arrow::DataType& whole, ColumnKind& kind) {
  const arrow::DataType& type = plain(whole);
  DType element;
  if (const auto of = list_element(type)) {
    // A dictionary of lists is nothing that is met.
    kind = is_text(*of) ? ColumnKind::json : ColumnKind::array;
    return whole.id() != Type::DICTIONARY && (is_text(*of) || element_of(*of, element));
  }
  switch (type.id()) {
    case Type::HALF_FLOAT:
    case Type::FLOAT:
    case Type::DOUBLE:
    case Type::DECIMAL32:
    case Type::DECIMAL64:
    case Type::DECIMAL128:
    case Type::DECIMAL256:
      kind = ColumnKind::real;
      return true;
    case Type::NA:
    case Type::STRING:
    case Type::LARGE_STRING:
    case Type::STRING_VIEW:
      kind = ColumnKind::text;
      return true;
    case Type::BINARY:
    case Type::LARGE_BINARY:
    case Type::BINARY_VIEW:
    case Type::FIXED_SIZE_BINARY:
      kind = ColumnKind::bytes;
      return true;
    case Type::DATE32:
    case Type::DATE64:
    case Type::TIMESTAMP:
    case Type::TIME32:
    case Type::TIME64:
    case Type::DURATION:
      kind = ColumnKind::integer;
      return true;
    default:
      kind = ColumnKind::integer;
      return element_of(type, element);
  }
}

ColumnValues values_of(const arrow::ChunkedArray& array) {
  ColumnValues values;
  if (!kind_of(*array.type(), values.kind))
    throw std::runtime_error("a column of the type " + array.type()->ToString() + " cannot be used");
  Appender appender(values);
  for (const auto& chunk : array.chunks()) appender.append(chunk);
  return values;
}

}  // namespace millrace::data::arrow_module
