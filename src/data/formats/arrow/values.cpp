// Arrow's arrays as columns of ours.
#include <arrow/type_traits.h>
#include <arrow/util/float16.h>
#include <arrow/util/formatting.h>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "data/formats/arrow/adaptors.h"

namespace millrace::data::arrow_module {
namespace {

using arrow::Type;

const arrow::DataType& plain(const arrow::DataType& type) {
  if (type.id() == Type::EXTENSION)
    return plain(*static_cast<const arrow::ExtensionType&>(type).storage_type());
  if (type.id() == Type::DICTIONARY)
    return plain(*static_cast<const arrow::DictionaryType&>(type).value_type());
  return type;
}

/// A type of numbers: what an element of an array is for it, in C++ and here.
template <typename ArrowType, typename Value, DType type>
struct NumberType {
  using ArrayType = typename arrow::TypeTraits<ArrowType>::ArrayType;
  using Element = Value;
  static constexpr Type::type id = ArrowType::type_id;
  static constexpr DType element = type;
};

/// Calls visit(NumberType) for a type of numbers; false, and nothing done, for all else.
template <typename Visit>
bool visit_number(Type::type id, Visit&& visit) {
  const auto visit_one_of = [&](auto... types) { return ((id == types.id && (visit(types), true)) || ...); };
  return visit_one_of(
      NumberType<arrow::BooleanType, uint8_t, boolean>(), NumberType<arrow::Int8Type, int8_t, i8>(),
      NumberType<arrow::UInt8Type, uint8_t, u8>(), NumberType<arrow::Int16Type, int32_t, i32>(),
      NumberType<arrow::UInt16Type, int32_t, i32>(), NumberType<arrow::Int32Type, int32_t, i32>(),
      NumberType<arrow::UInt32Type, int64_t, i64>(), NumberType<arrow::Int64Type, int64_t, i64>(),
      NumberType<arrow::UInt64Type, int64_t, i64>(), NumberType<arrow::HalfFloatType, uint16_t, f16>(),
      NumberType<arrow::FloatType, float, f32>(), NumberType<arrow::DoubleType, double, f64>());
}

/// The element type of arrays of numbers of this type; false for all else.
bool element_of(const arrow::DataType& type, DType& element) {
  return visit_number(type.id(), [&]<typename Number>(Number) { element = Number::element; });
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
    throw std::runtime_error("a duration is too long for microseconds");
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

/// Fractions of a second end where only zeros would follow: "12:30:00.5".
void append_short(std::string_view time, std::string& to) {
  const bool utc = time.ends_with('Z'), fraction = time.find('.') != std::string_view::npos;
  if (utc) time.remove_suffix(1);
  if (fraction) time = time.substr(0, time.find_last_not_of('0') + 1);
  if (time.ends_with('.')) time.remove_suffix(1);
  to += time;
  if (utc) to += 'Z';
}

int64_t checked_unsigned(uint64_t value) {
  if (value > static_cast<uint64_t>(INT64_MAX)) throw std::runtime_error("a whole number is beyond 2^63 - 1");
  return static_cast<int64_t>(value);
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
  /// Integers or reals, as what get(array, place) gives.
  template <typename ArrayType, typename Get>
  void put_all(const arrow::Array& array, Get&& get) {
    const auto& typed = static_cast<const ArrayType&>(array);
    for (int64_t i = 0; i < typed.length(); ++i) {
      using Number = decltype(get(typed, i));
      const Number number = typed.IsValid(i) ? get(typed, i) : Number();
      if constexpr (std::is_same_v<Number, double>)
        out_.reals.push_back(number);
      else
        out_.integers.push_back(number);
    }
  }
  template <typename ArrayType>
  void plain_numbers(const arrow::Array& array) {
    put_all<ArrayType>(array, [](const ArrayType& typed, int64_t i) {
      const auto value = typed.Value(i);
      if constexpr (std::is_same_v<ArrayType, arrow::HalfFloatArray>)
        return static_cast<double>(arrow::util::Float16::FromBits(value).ToFloat());
      else if constexpr (std::is_floating_point_v<decltype(typed.Value(i))>)
        return static_cast<double>(value);
      else if constexpr (std::is_same_v<ArrayType, arrow::UInt64Array>)
        return checked_unsigned(value);
      else
        return static_cast<int64_t>(value);
    });
  }
  template <typename ArrayType>
  void decimals(const arrow::Array& array) {
    put_all<ArrayType>(array, [](const ArrayType& typed, int64_t i) {
      return std::strtod(typed.FormatValue(i).c_str(), nullptr);
    });
  }
  void durations(const arrow::Array& array) {
    const auto unit = static_cast<const arrow::DurationType&>(*array.type()).unit();
    put_all<arrow::DurationArray>(array, [unit](const arrow::DurationArray& typed, int64_t i) {
      return microseconds(typed.Value(i), unit);
    });
  }
  /// Booleans, dates and times as formats have them that hold texts, so that a model learnt from one reads
  /// the others: "true", "2024-12-31", "2024-12-31 12:30:00.5", behind which is a Z where they are UTC.
  template <typename ArrayType>
  void written(const arrow::Array& array) {
    using Type = typename ArrayType::TypeClass;
    const auto& typed = static_cast<const ArrayType&>(array);
    arrow::internal::StringFormatter<Type> format(array.type().get());
    const auto bytes = std::make_shared<std::string>();
    std::vector<size_t> ends;
    for (int64_t i = 0; i < typed.length(); ++i) {
      if (typed.IsValid(i))
        format(typed.Value(i), [&](std::string_view text) { append_short(text, *bytes); });
      ends.push_back(bytes->size());
    }
    hand_over(bytes, ends);
  }
  template <typename ArrayType>
  void contents(const std::shared_ptr<arrow::Array>& array) {
    const auto& typed = static_cast<const ArrayType&>(*array);
    for (int64_t i = 0; i < typed.length(); ++i)
      out_.contents.push_back(typed.IsValid(i) ? std::string_view(typed.GetView(i)) : std::string_view());
    out_.owners.push_back(array);
  }

  void values(const std::shared_ptr<arrow::Array>& shared) {
    const arrow::Array& array = *shared;
    if (array.type_id() == Type::BOOL) return written<arrow::BooleanArray>(array);
    if (visit_number(array.type_id(),
                     [&]<typename Number>(Number) { plain_numbers<typename Number::ArrayType>(array); }))
      return;
    switch (array.type_id()) {
      case Type::NA:
        return out_.contents.resize(out_.contents.size() + static_cast<size_t>(array.length()));
      case Type::DECIMAL32:
        return decimals<arrow::Decimal32Array>(array);
      case Type::DECIMAL64:
        return decimals<arrow::Decimal64Array>(array);
      case Type::DECIMAL128:
        return decimals<arrow::Decimal128Array>(array);
      case Type::DECIMAL256:
        return decimals<arrow::Decimal256Array>(array);
      case Type::DATE32:
        return written<arrow::Date32Array>(array);
      case Type::DATE64:
        return written<arrow::Date64Array>(array);
      case Type::TIMESTAMP:
        return written<arrow::TimestampArray>(array);
      case Type::TIME32:
        return written<arrow::Time32Array>(array);
      case Type::TIME64:
        return written<arrow::Time64Array>(array);
      case Type::DURATION:
        return durations(array);
      case Type::STRING:
      case Type::BINARY:
        return contents<arrow::BinaryArray>(shared);
      case Type::LARGE_STRING:
      case Type::LARGE_BINARY:
        return contents<arrow::LargeBinaryArray>(shared);
      case Type::STRING_VIEW:
      case Type::BINARY_VIEW:
        return contents<arrow::BinaryViewArray>(shared);
      case Type::FIXED_SIZE_BINARY:
        return contents<arrow::FixedSizeBinaryArray>(shared);
      case Type::EXTENSION:
        return values(static_cast<const arrow::ExtensionArray&>(array).storage());
      case Type::DICTIONARY:
        return dictionary(static_cast<const arrow::DictionaryArray&>(array));
      case Type::LIST:
        return lists(static_cast<const arrow::ListArray&>(array));
      case Type::LARGE_LIST:
        return lists(static_cast<const arrow::LargeListArray&>(array));
      case Type::FIXED_SIZE_LIST:
        return lists(static_cast<const arrow::FixedSizeListArray&>(array));
      default:
        throw std::runtime_error("a column of the type " + array.type()->ToString() + " cannot be used");
    }
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
    const auto bytes = std::make_shared<std::string>();
    std::vector<size_t> ends;
    const bool numbers = visit_number(array.values()->type_id(), [&]<typename Number>(Number) {
      out_.element = Number::element;
      for (int64_t i = 0; i < array.length(); ++i) {
        if (array.IsValid(i))
          put<Number>(*array.values(), array.value_offset(i), array.value_length(i), *bytes);
        ends.push_back(bytes->size());
      }
    });
    if (!numbers) throw std::runtime_error("a list of no numbers");
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

  template <typename Number>
  void put(const arrow::Array& array, int64_t begin, int64_t count, std::string& bytes) {
    using ArrayType = typename Number::ArrayType;
    using To = typename Number::Element;
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
    case Type::BOOL:
    case Type::DATE32:
    case Type::DATE64:
    case Type::TIMESTAMP:
    case Type::TIME32:
    case Type::TIME64:
      kind = ColumnKind::text;
      return true;
    case Type::BINARY:
    case Type::LARGE_BINARY:
    case Type::BINARY_VIEW:
    case Type::FIXED_SIZE_BINARY:
      kind = ColumnKind::bytes;
      return true;
    case Type::DURATION:
      kind = ColumnKind::integer;
      return true;
    default: {
      const bool number = element_of(type, element);
      kind = element.is_float() ? ColumnKind::real : ColumnKind::integer;
      return number;
    }
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
