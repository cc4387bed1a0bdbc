// Any bytes as an index sidecar: everything that it then says can be read, or it is refused. Its checksums
// are mended first, or nothing would be let through.
#include "data/table/index.h"

#include <cstdlib>

#include "fuzz/fuzz.h"
#include "fuzz/mend_index.h"

using namespace millrace;
using namespace millrace::data;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<uint8_t> bytes(data, data + size);
  fuzz::mend_index(bytes);
  fuzz::refuse_or_take([&] {
    const auto index = Index::parse(Bytes(std::move(bytes)), "fuzz.mrx");
    for (int64_t i = 0; i < index->count(); ++i) {
      (void)std::string(index->key(i));
      for (size_t c = 0; c < index->columns().size(); ++c) (void)index->has(i, c);
      for (const Index::Small& small : index->small()) (void)index->value(small, i);
      if (index->located() &&
          (index->offset(i) > index->file_size() || index->size(i) > index->file_size() - index->offset(i)))
        std::abort();
    }
  });
  return 0;
}
