#include <millrace/dataset.h>

#include "base/format.h"
#include "base/suggest.h"

namespace millrace::data {
std::string Dataset::name(int64_t index) const { return fmt::format("{}#{}", path_, index); }

void Dataset::will_read(int64_t index) const {
  if (const auto at = extent(index)) files()[at->file]->will_read(at->offset, at->size);
}

size_t Dataset::column(std::string_view name) const {
  if (const auto found = find_column(name)) return *found;
  std::vector<std::string> names;
  for (const Column& each : columns_) names.push_back(each.name);
  fail<InputError>("{}: there is no column '{}'{} There are: {}", path_, name, did_you_mean(name, names, "."),
                   fmt::join(names, ", "));
}

std::optional<size_t> Dataset::find_column(std::string_view name) const {
  for (size_t i = 0; i < columns_.size(); ++i)
    if (columns_[i].name == name) return i;
  return std::nullopt;
}

}  // namespace millrace::data
