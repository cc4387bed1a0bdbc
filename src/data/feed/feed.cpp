#include <cstring>

#include <millrace/feed.h>

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

Array Feed::array(const FeedBatch& batch, size_t i) const {
  MILLRACE_CHECK(i < fields().size() && i < batch.arrays.size(),
                 "{}: there is no array {} of a batch: it has {}", path(), i, fields().size());
  const Field& field = fields()[i];
  Array array(field.type.dtype,
              field.type.shape.specialise({{"batch", batch_size()}, {"length", batch.length}}));
  const auto bytes = batch.arrays[i];
  MILLRACE_CHECK(static_cast<size_t>(array.bytes()) == bytes.size(), "{}: '{}' has {} bytes, {} takes {}",
                 path(), field.name, bytes.size(), array.type().str(), array.bytes());
  std::memcpy(array.data(), bytes.data(), bytes.size());
  return array;
}

void Feed::skip(int64_t batches) {
  for (; batches > 0; --batches) next();
}

void Feed::set_shares(std::span<const double> /*shares*/) {
  fail<InputError>("{}: is one source, which has no weight", path());
}

}  // namespace millrace::data
