// An ONNX model (.onnx), whoever wrote it.
#include <algorithm>
#include <memory>

#include "base/format.h"
#include "onnx/import/import.h"
#include "onnx/onnx_file.h"
#include "session/format.h"

namespace millrace {
namespace {

/// Dimensions without a number are named as the model names them, else by their place.
SessionValue described(const onnx::ValueInfo& info) {
  SessionValue value{info.name, {}};
  const std::optional<DType> dtype = onnx::dtype_of(info.data_type);
  const bool tensor = info.form == onnx::ValueInfo::Form::tensor;
  if (!tensor || !dtype)
    fail<InputError>("'{}' is {}; Millrace runs models of numbers in tensors", info.name,
                     tensor ? "a tensor of " + onnx::data_type_name(info.data_type) : "no tensor");
  value.type.dtype = *dtype;
  for (size_t axis = 0; axis < info.shape.size(); ++axis) {
    const onnx::ValueInfo::Dimension& dim = info.shape[axis];
    value.type.shape.push_back(
        dim.size >= 0 ? Dim(dim.size)
                      : Dim::named(dim.name.empty() ? fmt::format("{}_{}", info.name, axis) : dim.name));
  }
  return value;
}

/// Whether the size of an output depends on data; then its true one is an output more.
bool bounded(const onnx::Model& model, const std::string& output) {
  for (const onnx::NodeProto& node : model.graph.nodes)
    if (node.domain.empty() && !node.outputs.empty() && node.outputs[0] == output)
      return node.op_type == "NonMaxSuppression" || node.op_type == "NonZero" || node.op_type == "Compress";
  return false;
}

/// As far as its shape can be believed before its elements are read.
int64_t bytes_of(const onnx::TensorProto& tensor) {
  constexpr double most = 1e15;
  const std::optional<DType> dtype = onnx::dtype_of(tensor.data_type);
  double bytes = dtype ? dtype->bytes() : 0;
  for (const int64_t size : tensor.dims) bytes *= static_cast<double>(std::max<int64_t>(size, 0));
  return static_cast<int64_t>(std::min(bytes, most));
}

SessionModel load_onnx(const std::filesystem::path& path) {
  const auto model = std::make_shared<onnx::Model>(onnx::read_model(path));
  SessionModel session;
  std::map<std::string, Type> given;
  for (const onnx::ValueInfo& input : model->graph.inputs) {
    bool initialised = false;
    for (const onnx::TensorProto& each : model->graph.initialisers)
      initialised = initialised || each.name == input.name;
    if (initialised) continue;
    if (!input.has_shape)
      fail<InputError>("{}: the model does not say the shape of its input '{}'", path.string(), input.name);
    session.inputs.push_back(described(input));
    given[input.name] = session.inputs.back().type;
  }
  for (const onnx::TensorProto& tensor : model->graph.initialisers)
    session.constant_bytes += bytes_of(tensor);
  for (const onnx::ValueInfo& output : model->graph.outputs) {
    session.outputs.push_back(described(output));
    if (bounded(*model, output.name)) session.outputs.push_back({output.name + ".size", {i64, {}}});
  }
  const size_t outputs = session.outputs.size();
  session.graph = [model, given, outputs, path](const Bindings& sizes) {
    onnx::ImportOptions options;
    for (const auto& [name, type] : given) options.inputs[name] = {type.dtype, type.shape.specialise(sizes)};
    Graph graph = onnx::import_model(*model, options).graph;
    if (graph.outputs().size() != outputs)
      fail<InputError>("{}: it gives what is no tensor, or of a size that depends on data", path.string());
    return graph;
  };
  return session;
}

}  // namespace

MILLRACE_MODEL_FORMAT(onnx){"onnx", "an ONNX model",
                            [](const std::filesystem::path& path) {
                              return std::filesystem::is_regular_file(path) && is_onnx_file(path);
                            },
                            load_onnx};

}  // namespace millrace
