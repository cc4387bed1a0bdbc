#include "data/table/contents.h"

#include <algorithm>

#include "base/format.h"

namespace millrace::data {

std::string columns_text(const Dataset& dataset) {
  constexpr size_t shown = 20;
  const std::vector<Column>& columns = dataset.columns();
  std::string text;
  for (size_t c = 0; c < std::min(columns.size(), shown); ++c)
    text += fmt::format("{}{} ({})", c > 0 ? ", " : "", columns[c].name, kind_name(columns[c].kind));
  if (columns.size() > shown) text += fmt::format(", and {} more", columns.size() - shown);
  return text.empty() ? "none" : text;
}

const char* kind_plural(ColumnKind kind) {
  switch (kind) {
    case ColumnKind::picture:
      return "pictures";
    case ColumnKind::audio:
      return "sounds";
    case ColumnKind::text:
      return "texts";
    case ColumnKind::array:
      return "arrays";
    case ColumnKind::integer:
    case ColumnKind::real:
      return "numbers";
    default:
      return "contents";
  }
}

Contents::Contents(const Dataset& dataset, ColumnKind kind, const std::string& column) : dataset_(&dataset) {
  if (!column.empty()) {
    columns_ = {dataset.column(column)};
    return;
  }
  for (size_t c = 0; c < dataset.columns().size(); ++c)
    if (dataset.columns()[c].kind == kind) columns_.push_back(c);
  if (columns_.empty())
    fail<InputError>("{}: has no {}: no column holds them; there are: {}", dataset.path(), kind_plural(kind),
                     columns_text(dataset));
}

bool Contents::in(const Dataset& dataset, ColumnKind kind) {
  return std::any_of(dataset.columns().begin(), dataset.columns().end(),
                     [&](const Column& column) { return column.kind == kind; });
}

std::optional<size_t> Contents::column(int64_t index) const {
  for (const size_t column : columns_)
    if (dataset_->has(index, column)) return column;
  return std::nullopt;
}

Value Contents::read(int64_t index) const {
  const auto at = column(index);
  return at ? dataset_->read(index, *at) : Value();
}

}  // namespace millrace::data
