#include "onnx/onnx_file.h"

#include "base/mapped_file.h"
#include "base/wire.h"

namespace millrace {

bool is_onnx_file(const std::filesystem::path& path) {
  constexpr int ir_version = 1, model_version = 5, graph = 7, last_field = 26;
  const MappedFile file(path);
  bool version = false, model = false;
  WireReader fields({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()});
  while (fields.next()) {
    const bool number = fields.field() == ir_version || fields.field() == model_version;
    if (fields.field() > last_field || fields.type() != (number ? 0 : 2)) return false;
    version = version || fields.field() == ir_version;
    model = model || fields.field() == graph;
  }
  return version && model && !fields.damaged();
}

}  // namespace millrace
