#include <map>

#include <millrace/weights.h>

#include "base/format.h"
#include "optim/model_scope.h"
#include "track/safetensors.h"

namespace millrace::nn {

void save_weights(Module& model, const std::filesystem::path& path) {
  track::NamedArrays tensors;
  for (const Named& named : optim::tensors_of(model))
    tensors.emplace_back(named.name, optim::value_of(named));
  track::write_safetensors(path, tensors);
}

void load_weights(Module& model, const std::filesystem::path& path) {
  const track::SafeTensors file(path);
  const std::vector<Named> wanted = optim::tensors_of(model);
  std::map<std::string, Array> found;
  for (const Named& named : wanted) {
    if (!file.has(named.name))
      fail<InputError>("{}: there is no '{}', which the model has", path.string(), named.name);
    const Type &theirs = file.type(named.name), own{named.tensor->dtype(), named.tensor->shape()};
    if (theirs.shape != own.shape)
      fail<InputError>("{}: '{}' is {}, the model wants {}", path.string(), named.name, theirs.str(),
                       own.str());
    found.emplace(named.name, file.tensor(named.name).converted(own.dtype));
  }
  for (const std::string& name : file.names())
    if (!found.contains(name)) fail<InputError>("{}: the model has no '{}'", path.string(), name);
  for (const Named& named : wanted) {
    if (named.tensor->is_symbol()) {
      *named.tensor = Tensor(found.at(named.name));
    } else {
      Array array = optim::value_of(named);
      array.assign(found.at(named.name));
    }
  }
}

}  // namespace millrace::nn
