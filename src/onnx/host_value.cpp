#include "onnx/host_value.h"

#include "base/format.h"

namespace millrace::onnx {

int64_t Texts::count() const { return Shape(shape).count(); }

Texts texts_of(const TensorProto& tensor) {
  if (const std::string fault = Type{u8, Shape(tensor.dims)}.fault(); !fault.empty())
    fail<InputError>("the tensor of texts '{}': {}", tensor.name, fault);
  Texts texts{tensor.dims, tensor.texts};
  if (texts.count() != static_cast<int64_t>(texts.values.size()))
    fail<InputError>("the tensor '{}' says that its shape is {}, but holds {} texts", tensor.name,
                     Shape(tensor.dims).str(), texts.values.size());
  return texts;
}

}  // namespace millrace::onnx
