// A file with an index that lies about it, of each format that is opened by its index (the index says which):
// samples come out, or they are refused. First the index's size (2 bytes), then the index and the file.
#include <millrace/file.h>

#include "data/formats/formats.h"
#include "data/table/index.h"
#include "fuzz/dataset.h"
#include "fuzz/mend_index.h"

using namespace millrace;
using namespace millrace::data;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const uint8_t* const middle = data + 2 + std::min(data[0] + size_t{256} * data[1], size - 2);
  std::vector<uint8_t> bytes(data + 2, middle), content(middle, data + size);
  if (content.empty()) return 0;
  fuzz::mend_index(bytes, content.size());
  fuzz::refuse_or_take([&] {
    const auto index = Index::parse(Bytes(std::move(bytes)), "fuzz.mrx");
    const Format& format = formats().at(index->format());
    const auto file = memory_file("fuzz", Bytes(std::move(content)));
    if (!format.open_indexed || !index->located() || index->count() == 0) return;
    if (const auto dataset = format.open_indexed("fuzz", {file}, {index})) fuzz::read_samples(*dataset);
  });
  return 0;
}
