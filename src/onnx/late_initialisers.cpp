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
    for (auto& [name, array] : arrays) {
      digests_[name] = std::make_shared<LateDigest>(files_->contains(std::as_const(array).data()));
      array = LateArrays::with_digest(array, digests_[name]);
    }
    return arrays;
  }
  for (const TensorProto& tensor : model_->graph.initialisers) {
    const auto found = digests_.find(tensor.name);
    if (found == digests_.end()) continue;
    if (const auto kept = kept_.find(tensor.name); kept != kept_.end()) {
      arrays.insert(*kept);
      continue;
    }
    const std::shared_ptr<LateDigest>& digest = found->second;
    const auto read = [model = model_, files = files_, &tensor] {
      return array_of(tensor, model->folder, files.get());
    };
    // What lies in a file that is mapped needs no copy.
    if (digest->in_file() || !digest->get()) {
      arrays.emplace(tensor.name, LateArrays::with_digest(read(), digest));
      continue;
    }
    const auto write = [model = model_, read](void* elements) {
      const Array array = read();
      require_mapped_file(model->mapped);  // or the digest would be of others
      std::memcpy(elements, array.data(), static_cast<size_t>(array.bytes()));
    };
    arrays.emplace(tensor.name,
                   LateArrays::make({*dtype_of(tensor.data_type), Shape(tensor.dims)}, write, digest));
    late_.insert(tensor.name);
  }
  return arrays;
}

void LateInitialisers::keep_fetched(const std::map<std::string, Array>& arrays) {
  constexpr int64_t most = 4 << 20;
  const std::lock_guard lock(mutex_);
  for (const auto& [name, array] : arrays)
    if (late_.contains(name) && !LateArrays::is_late(array) && kept_bytes_ + array.bytes() <= most &&
        kept_.emplace(name, array).second)
      kept_bytes_ += array.bytes();
}

}  // namespace millrace::onnx
