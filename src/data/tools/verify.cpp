#include "data/tools/verify.h"

#include "base/crc32c.h"
#include "base/format.h"
#include "data/io/remote_object.h"
#include "data/table/index.h"

namespace millrace::data {

VerifyResult verify(const Dataset& dataset, const std::function<void(int64_t, int64_t)>& progress) {
  VerifyResult result;
  result.samples = dataset.count();
  std::vector<std::shared_ptr<const Index>> indices;
  for (const auto& file : dataset.files()) {
    std::string ignored;
    indices.push_back(open_index(*file, ignored, true));
  }
  // A file's samples are neighbours: the place in its index is counted from its first.
  size_t file = 0;
  int64_t first = 0;
  for (int64_t i = 0; i < result.samples; ++i) {
    try {
      if (const auto extent = dataset.extent(i)) {
        if (extent->file != file) {
          file = extent->file;
          first = i;
        }
        const Index* index = indices.at(file).get();
        const int64_t at = i - first;
        if (index && index->located()) {
          ++result.with_checksum;
          if (at >= index->count() || index->offset(at) != extent->offset || index->size(at) != extent->size)
            fail<InputError>("it lies elsewhere than the index says");
          const Bytes bytes = dataset.files()[file]->read(extent->offset, extent->size);
          const uint32_t found = crc32c(bytes.data(), bytes.size());
          if (found != index->checksum(at))
            fail<InputError>("its bytes have changed: checksum {:08x}, the index says {:08x}", found,
                             index->checksum(at));
        }
      }
      dataset.verify(i);
    } catch (const RemoteError&) {
      throw;  // the server is away: no fault of this sample
    } catch (const Error& error) {
      result.bad.push_back({i, dataset.name(i), error.what()});
    }
    if (progress && (i % 1024 == 1023 || i + 1 == result.samples)) progress(i + 1, result.samples);
  }
  return result;
}

}  // namespace millrace::data
