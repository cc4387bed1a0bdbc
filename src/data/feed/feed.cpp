#include "data/feed/feed.h"

#include "base/format.h"

namespace millrace::data {

bool Feed::has_field(std::string_view name) const {
  for (const Field& each : fields())
    if (each.name == name) return true;
  return false;
}

size_t Feed::field(std::string_view name) const {
  const auto all = fields();
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i].name == name) return i;
  fail<InternalError>("{}: there is no array '{}'", path(), name);
}

void Feed::skip(int64_t batches) {
  for (; batches > 0; --batches) next();
}

void Feed::set_shares(std::span<const double> /*shares*/) {
  fail<InputError>("{}: is one source, which has no weight", path());
}

}  // namespace millrace::data
