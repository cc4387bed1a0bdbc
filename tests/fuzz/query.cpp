// Any text as a condition, asked of a small data set: an answer or a refusal.
#include "data/table/query.h"

#include <cstdlib>

#include "data/table/select.h"
#include "fuzz/fuzz.h"

using namespace millrace;
using namespace millrace::data;

namespace {

class Small final : public Dataset {
 public:
  Small() : Dataset("small") {
    columns_ = {{"label", ColumnKind::integer}, {"score", ColumnKind::real}, {"txt", ColumnKind::text}};
  }
  int64_t count() const override { return 4; }
  bool has(int64_t index, size_t column) const override { return index != static_cast<int64_t>(column); }
  data::Value read(int64_t index, size_t column) const override {
    if (!has(index, column)) return {};
    if (column == 0) return index;
    if (column == 1) return 0.5 * static_cast<double>(index);
    return std::string(static_cast<size_t>(index), 'a');
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Small dataset;
  fuzz::refuse_or_take([&] {
    for (const int64_t sample : matching(dataset, Query::parse(fuzz::text(data, size))))
      if (sample < 0 || sample >= dataset.count()) std::abort();
  });
  return 0;
}
