// An ONNX model (.onnx), whoever wrote it.
#include <algorithm>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "base/mapped_file.h"
#include "model_formats/onnx_decode.h"
#include "onnx/external_files.h"
#include "onnx/import/import.h"
#include "onnx/models/trainable.h"
#include "onnx/onnx_file.h"
#include "plan/constants.h"
#include "session/format.h"
#include "session/sizes.h"

namespace millrace {
namespace {

SessionValue described(const onnx::ValueInfo& info) {
  SessionValue value{info.name, {}};
  const std::optional<DType> dtype = onnx::dtype_of(info.data_type);
  const bool tensor = info.form == onnx::ValueInfo::Form::tensor;
  if (!tensor || !dtype)
    fail<InputError>("'{}' is {}; Millrace runs models of numbers in tensors", info.name,
                     tensor ? "a tensor of " + onnx::data_type_name(info.data_type) : "no tensor");
  value.type.dtype = *dtype;
  for (const onnx::ValueInfo::Dimension& dim : info.shape)
    value.type.shape.push_back(dim.size >= 0 ? Dim(dim.size) : Dim::named(dim.name));
  return value;
}

/// Whether a graph has an operator whose result may be as large as the data say.
bool may_depend_on_data(const onnx::GraphProto& graph) {
  static const std::set<std::string_view> such = {"Compress",          "If",      "Loop",
                                                  "NonMaxSuppression", "NonZero", "Unique"};
  // Where a Slice begins and ends may be an input.
  const bool places = std::any_of(graph.inputs.begin(), graph.inputs.end(), [](const onnx::ValueInfo& input) {
    const std::optional<DType> dtype = onnx::dtype_of(input.data_type);
    return input.shape.size() <= 1 && dtype && dtype->is_int();
  });
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const onnx::NodeProto& node) {
    return such.contains(node.op_type) || (places && node.op_type == "Slice");
  });
}

/// The model read for these sizes of its inputs; its outputs are tensors.
onnx::Imported read_for(const onnx::Model& model, const std::vector<SessionValue>& inputs,
                        const Bindings& sizes, const std::shared_ptr<onnx::ExternalFiles>& files = nullptr) {
  onnx::ImportOptions options;
  options.files = files;
  for (const SessionValue& input : inputs)
    options.inputs[input.name] = {input.type.dtype, input.type.shape.specialise(sizes)};
  onnx::Imported imported = onnx::import_model(model, options);
  for (size_t i = 0; i < imported.outputs.size(); ++i)
    if (imported.outputs[i].form != onnx::Item::Form::tensor)
      fail<InputError>("its output '{}' is no tensor", model.graph.outputs[i].name);
  return imported;
}

/// Finds the outputs whose size depends on data, by reading the model for some sizes. Of a model that cannot
/// be read for these it is not known; whoever runs it is told why.
void find_data_axes(const onnx::Model& model, SessionModel& session) {
  if (!may_depend_on_data(model.graph) && model.functions.empty()) return;
  for (const int64_t example : {2, 64, 1}) {
    Bindings sizes;
    for (const std::string& name : named_dimensions(session.inputs)) sizes[name] = example;
    try {
      const onnx::Imported imported = read_for(model, session.inputs, sizes);
      for (size_t i = 0; i < imported.outputs.size(); ++i)
        session.outputs[i].data_axis = imported.outputs[i].bounded_axis;
      return;
    } catch (const InternalError&) {
      throw;
    } catch (const Error&) {
      continue;
    }
  }
}

/// Shapes of outputs that the file does not say, by reading the model for two sizes: what differs is open.
void find_shapes(const onnx::Model& model, SessionModel& session) {
  std::vector<size_t> unsaid;
  for (size_t i = 0; i < session.outputs.size(); ++i)
    if (!model.graph.outputs[i].has_shape) unsaid.push_back(i);
  if (unsaid.empty()) return;
  const std::set<std::string> names = named_dimensions(session.inputs);
  for (const int64_t size : {2, 64}) {
    Bindings first, second;
    for (const std::string& name : names) {
      first[name] = size;
      second[name] = size + 1;
    }
    try {
      const onnx::Imported one = read_for(model, session.inputs, first),
                           other = names.empty() ? one : read_for(model, session.inputs, second);
      for (const size_t i : unsaid) {
        const Shape &a = one.graph.type(one.outputs[i].value).shape,
                    &b = other.graph.type(other.outputs[i].value).shape;
        if (a.rank() != b.rank()) return;
        Shape found;
        for (int d = 0; d < a.rank(); ++d)
          found.push_back(a[d] == b[d]        ? a[d]
                          : names.size() == 1 ? Dim::named(*names.begin())
                                              : Dim::named(fmt::format("{}.{}", session.outputs[i].name, d)));
        session.outputs[i].type.shape = found;
      }
      return;
    } catch (const InternalError&) {
      throw;
    } catch (const Error&) {
      continue;  // as find_data_axes()
    }
  }
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
  for (const onnx::ValueInfo& input : model->graph.inputs) {
    if (onnx::find_initialiser(*model, input.name)) continue;
    if (!input.has_shape)
      fail<InputError>("{}: the model does not say the shape of its input '{}'", path.string(), input.name);
    session.inputs.push_back(described(input));
  }
  for (const onnx::TensorProto& tensor : model->graph.initialisers)
    session.constant_bytes += bytes_of(tensor);
  for (const onnx::ValueInfo& output : model->graph.outputs) session.outputs.push_back(described(output));
  find_data_axes(*model, session);
  find_shapes(*model, session);
  session.decisions = [model, inputs = session.inputs](const Bindings& sizes) {
    return read_for(*model, inputs, sizes).decisions;
  };
  const auto files = std::make_shared<onnx::ExternalFiles>();
  session.require_unchanged = [files] { files->require_unchanged(); };
  session.graph = [model, files, inputs = session.inputs, outputs = session.outputs,
                   path](const Bindings& sizes) {
    onnx::Imported imported = read_for(*model, inputs, sizes, files);
    require_mapped_file(model->mapped);  // or the weights of some sizes would be others'
    Graph& graph = imported.graph;
    // The model's outputs, and behind them, of each whose size depends on data, that size.
    std::vector<Value> values, counts;
    std::vector<std::string> names, count_names;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const onnx::Item& output = imported.outputs[i];
      const int axis = outputs[i].data_axis;
      values.push_back(output.value);
      names.push_back(outputs[i].name);
      if (const DType dtype = graph.type(output.value).dtype; dtype != outputs[i].type.dtype)
        fail<InputError>("{}: its output '{}' is of {}, and the file says {}", path.string(), names[i],
                         dtype.name(), outputs[i].type.dtype.name());
      if (output.bounded_axis >= 0 && output.bounded_axis != axis)
        fail<InputError>("{}: how large its output '{}' is, depends on data for some sizes alone",
                         path.string(), names[i]);
      if (axis < 0) continue;
      count_names.push_back(names[i] + ".size");
      if (output.bounded_axis >= 0) {
        counts.push_back(output.size);
        continue;
      }
      // For some sizes it may be known, as where there is nothing to choose from.
      const int64_t known = graph.type(values[i]).shape[static_cast<size_t>(axis)].size();
      counts.push_back(graph.scalar(i64, static_cast<double>(known)));
    }
    values.insert(values.end(), counts.begin(), counts.end());
    names.insert(names.end(), count_names.begin(), count_names.end());
    graph.set_outputs(std::move(values), std::move(names));
    // Its constants were read for it alone.
    return share_constants(graph);
  };
  return session;
}

}  // namespace

MILLRACE_MODEL_FORMAT(onnx){"onnx", "an ONNX model",
                            [](const std::filesystem::path& path) {
                              return std::filesystem::is_regular_file(path) && is_onnx_file(path);
                            },
                            load_onnx, decode_onnx};

}  // namespace millrace
