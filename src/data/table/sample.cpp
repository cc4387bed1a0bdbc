#include "data/table/sample.h"

#include "data/table/query.h"

namespace millrace::data {

std::shared_ptr<const Source> sample_of(std::shared_ptr<const Source> source, int64_t count) {
  const int64_t all = source->count();
  if (count >= all) return source;
  std::vector<int64_t> samples;
  for (int64_t i = 0; i < count; ++i) samples.push_back(i * all / count);
  return select(std::move(source), std::move(samples));
}

}  // namespace millrace::data
