#include "data/table/column_values.h"

#include "base/format.h"

namespace millrace::data {

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
  return values.kind == ColumnKind::integer ? std::to_string(values.integers[i])
                                            : fmt::format("{}", values.reals[i]);
}

}  // namespace millrace::data
