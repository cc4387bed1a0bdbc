#include "data/table/column_values.h"

#include "base/format.h"
#include "data/table/contents.h"

namespace millrace::data {
namespace {

bool is_of_kind(const Value& value, ColumnKind kind) {
  switch (kind) {
    case ColumnKind::integer:
      return std::holds_alternative<int64_t>(value);
    case ColumnKind::real:
      return std::holds_alternative<double>(value);
    case ColumnKind::text:
    case ColumnKind::json:
      return std::holds_alternative<std::string>(value);
    case ColumnKind::picture:
      return std::holds_alternative<Bytes>(value) || std::holds_alternative<Pixels>(value);
    case ColumnKind::bytes:
    case ColumnKind::audio:
      return std::holds_alternative<Bytes>(value);
    case ColumnKind::array:
      return std::holds_alternative<Array>(value);
  }
  return false;
}

/// A number as a category is called.
std::string category_text(int64_t whole) { return std::to_string(whole); }
std::string category_text(double real) { return fmt::format("{}", real); }

}  // namespace

std::string value_fault(const Value& value, const Column& column) {
  if (const auto* pixels = std::get_if<Pixels>(&value); pixels && column.kind == ColumnKind::picture) {
    const std::string fault = stored_picture(value).fault();
    return fault.empty() ? fault : fmt::format("the column '{}': {}", column.name, fault);
  }
  if (std::holds_alternative<std::monostate>(value) || is_of_kind(value, column.kind)) return {};
  static constexpr const char* types[] = {"", "int64_t", "double", "std::string", "Bytes", "Pixels", "Array"};
  return fmt::format("the column '{}' is of kind {}, and its value is of type {}", column.name,
                     kind_name(column.kind), types[value.index()]);
}

ColumnKind kind_of_both(ColumnKind a, ColumnKind b) {
  if (a == b || !is_tabular(a) || !is_tabular(b)) return a;
  return is_numeric(a) && is_numeric(b) ? ColumnKind::real : ColumnKind::text;
}

Value as_kind(Value value, ColumnKind kind) {
  const auto* const whole = std::get_if<int64_t>(&value);
  const auto* const real = std::get_if<double>(&value);
  if (kind == ColumnKind::real && whole) return static_cast<double>(*whole);
  if (kind == ColumnKind::text && whole) return category_text(*whole);
  if (kind == ColumnKind::text && real) return category_text(*real);
  return value;
}

Value value_at(const std::shared_ptr<const ColumnValues>& values, size_t i) {
  if (!values->has(i)) return {};
  switch (values->kind) {
    case ColumnKind::integer:
      return values->integers[i];
    case ColumnKind::real:
      return values->reals[i];
    case ColumnKind::text:
    case ColumnKind::json:
      return std::string(values->contents[i]);
    case ColumnKind::array: {
      const std::string_view content = values->contents[i];
      Array array(values->element, {static_cast<int64_t>(content.size()) / values->element.bytes()});
      if (!content.empty()) std::memcpy(array.data(), content.data(), content.size());
      return array;
    }
    default: {
      const std::string_view content = values->contents[i];
      return Bytes({reinterpret_cast<const uint8_t*>(content.data()), content.size()}, values);
    }
  }
}

std::string category_text(const ColumnValues& values, size_t i) {
  return values.kind == ColumnKind::integer ? category_text(values.integers[i])
                                            : category_text(values.reals[i]);
}

void start_values(ColumnValues& values, ColumnKind kind, size_t count) {
  values.kind = kind;
  values.present.clear();
  values.owners.clear();
  values.integers.resize(kind == ColumnKind::integer ? count : 0);
  values.reals.resize(kind == ColumnKind::real ? count : 0);
  values.contents.assign(is_numeric(kind) ? 0 : count, {});  // the old ones' owners are gone
}

void put_values(const ColumnValues& from, std::span<const std::pair<size_t, size_t>> places,
                ColumnValues& to) {
  if (!from.present.empty() && to.present.empty()) to.present.assign(to.size(), 1);
  for (const auto& [source, target] : places) {
    if (from.kind == ColumnKind::integer)
      to.integers[target] = from.integers[source];
    else if (from.kind == ColumnKind::real)
      to.reals[target] = from.reals[source];
    else
      to.contents[target] = from.contents[source];
    if (!from.present.empty()) to.present[target] = from.present[source];
  }
  to.element = from.element;
  to.owners.insert(to.owners.end(), from.owners.begin(), from.owners.end());
}

}  // namespace millrace::data
