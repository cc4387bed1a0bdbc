#include "onnx/late_initialisers.h"

#include <cstring>
#include <utility>

#include "base/mapped_file.h"

namespace millrace::onnx {

LateInitialisers::LateInitialisers(std::shared_ptr<const Model> model, std::shared_ptr<ExternalFiles> files)
    : model_(std::move(model)), files_(std::move(files)) {}

std::map<std::string, Array> LateInitialisers::arrays() {
  const std::lock_guard lock(mutex_);
  std::map<std::string, Array> arrays;
  if (digests_.empty()) {
    arrays = large_initialisers(*model_, *files_);
    for (auto& [name, array] : arrays)
      array = LateArrays::with_digest(array, digests_[name] = std::make_shared<LateDigest>());
    return arrays;
  }
  for (const TensorProto& tensor : model_->graph.initialisers) {
    const auto found = digests_.find(tensor.name);
    if (found == digests_.end()) continue;
    const auto read = [model = model_, files = files_, &tensor] {
      Array array = array_of(tensor, model->folder, files.get());
      require_mapped_file(model->mapped);
      return array;
    };
    const std::shared_ptr<LateDigest>& digest = found->second;
    // What lies in a file that is mapped needs no copy.
    arrays.emplace(tensor.name, !digest->get() || !tensor.external.empty()
                                    ? LateArrays::with_digest(read(), digest)
                                    : LateArrays::make(
                                          {*dtype_of(tensor.data_type), Shape(tensor.dims)},
                                          [read](void* elements) {
                                            const Array array = read();
                                            std::memcpy(elements, array.data(),
                                                        static_cast<size_t>(array.bytes()));
                                          },
                                          digest));
  }
  return arrays;
}

}  // namespace millrace::onnx
