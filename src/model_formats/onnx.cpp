// An ONNX model (.onnx), whoever wrote it.
#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "base/mapped_file.h"
#include "model_formats/onnx_decode.h"
#include "onnx/external_files.h"
#include "onnx/import/import.h"
#include "onnx/late_initialisers.h"
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

/// Whether a graph has a node whose result may be as large as the data say: by its operator, or because it is
/// told a size or a place that is computed of an input, and not of the sizes of inputs.
bool may_depend_on_data(const onnx::GraphProto& graph) {
  static const std::set<std::string_view> always = {"Compress",          "If",      "Loop",
                                                    "NonMaxSuppression", "NonZero", "Unique"};
  static const std::set<std::string_view> where_told = {"ConstantOfShape", "Expand", "Pad", "Range",
                                                        "Reshape",         "Slice",  "Tile"};
  std::set<std::string_view> of_data;
  for (const onnx::ValueInfo& input : graph.inputs) of_data.insert(input.name);
  for (const onnx::TensorProto& tensor : graph.initialisers) of_data.erase(tensor.name);
  for (const onnx::NodeProto& node : graph.nodes) {
    if (always.contains(node.op_type)) return true;
    const auto is_data = [&](const std::string& name) { return of_data.contains(name); };
    const bool told_first = node.op_type == "ConstantOfShape" || node.op_type == "Range";
    if (where_told.contains(node.op_type) && !node.inputs.empty() &&
        std::any_of(node.inputs.begin() + (told_first ? 0 : 1), node.inputs.end(), is_data))
      return true;
    if (node.op_type != "Shape" && node.op_type != "Size" &&
        std::any_of(node.inputs.begin(), node.inputs.end(), is_data))
      of_data.insert(node.outputs.begin(), node.outputs.end());
  }
  return false;
}

/// What a model is read with: external data that is mapped, and its large initialisers.
struct Reading {
  std::shared_ptr<onnx::ExternalFiles> files;
  std::map<std::string, Array> weights;
};

/// The model read for these sizes of its inputs; its outputs are tensors.
onnx::Imported read_for(const onnx::Model& model, const std::vector<SessionValue>& inputs,
                        const Bindings& sizes, const Reading& reading) {
  onnx::ImportOptions options;
  options.files = reading.files;
  options.read = reading.weights;
  for (const SessionValue& input : inputs)
    options.inputs[input.name] = {input.type.dtype, input.type.shape.specialise(sizes)};
  onnx::Imported imported = onnx::import_model(model, options);
  for (size_t i = 0; i < imported.outputs.size(); ++i)
    if (imported.outputs[i].form != onnx::Item::Form::tensor)
      fail<InputError>("its output '{}' is no tensor", model.graph.outputs[i].name);
  return imported;
}

/// The same, of a file that is as it was: else what it cannot be read for is that.
onnx::Imported read_whole(const onnx::Model& model, const std::vector<SessionValue>& inputs,
                          const Bindings& sizes, const Reading& reading) {
  std::optional<onnx::Imported> imported;
  try {
    imported = read_for(model, inputs, sizes, reading);
  } catch (const Error&) {
    require_mapped_file(model.mapped);
    throw;
  }
  require_mapped_file(model.mapped);  // or the weights of some sizes would be others'
  return *std::move(imported);
}

/// Nothing where it cannot be read, and why.
std::optional<onnx::Imported> try_to_read(const onnx::Model& model, const std::vector<SessionValue>& inputs,
                                          const Bindings& sizes, const Reading& reading,
                                          std::string* why = nullptr) {
  try {
    return read_for(model, inputs, sizes, reading);
  } catch (const InternalError&) {
    throw;
  } catch (const Error& e) {
    if (why) *why = e.what();
    return std::nullopt;
  }
}

/// Sizes that a model's open dimensions may have: usual ones, then those that its weights have, or that it
/// names (as Reshape does).
std::vector<int64_t> likely_sizes(const onnx::Model& model) {
  constexpr int64_t largest = 4096;
  constexpr size_t few = 8, most = 16;
  std::map<int64_t, int> found;
  for (const onnx::TensorProto& tensor : model.graph.initialisers) {
    for (const int64_t size : tensor.dims) ++found[size];
    if (onnx::dtype_of(tensor.data_type) != i64 || tensor.raw.size() > few * sizeof(int64_t)) continue;
    for (size_t at = 0; at + sizeof(int64_t) <= tensor.raw.size(); at += sizeof(int64_t)) {
      int64_t number;
      std::memcpy(&number, tensor.raw.data() + at, sizeof number);
      ++found[number];
    }
  }
  std::vector<int64_t> sizes = {2, 64, 1};
  std::vector<std::pair<int, int64_t>> by_count;
  for (const auto& [size, count] : found)
    if (size > 2 && size != 64 && size <= largest) by_count.emplace_back(-count, size);
  std::sort(by_count.begin(), by_count.end());
  for (size_t i = 0; i < std::min(by_count.size(), most); ++i) sizes.push_back(by_count[i].second);
  return sizes;
}

/// Finds the outputs whose size depends on data, by reading the model for some sizes: one for all open
/// dimensions, then another for one of them. False where the model can be read for none of these.
bool find_data_axes(const onnx::Model& model, const Reading& reading, SessionModel& session) {
  const std::vector<int64_t> likely = likely_sizes(model);
  const std::set<std::string> names = named_dimensions(session.inputs);
  std::vector<Bindings> tries;
  for (const int64_t size : likely) {
    Bindings& sizes = tries.emplace_back();
    for (const std::string& name : names) sizes[name] = size;
  }
  const Bindings usual = tries.front();
  for (const std::string& name : names)
    for (const int64_t size : likely) {
      tries.push_back(usual);
      tries.back()[name] = size;
    }
  constexpr size_t most = 100;
  tries.resize(std::min(tries.size(), most));
  for (const Bindings& sizes : tries) {
    const auto imported = try_to_read(model, session.inputs, sizes, reading);
    if (!imported) continue;
    for (size_t i = 0; i < imported->outputs.size(); ++i)
      session.outputs[i].data_axis = imported->outputs[i].bounded_axis;
    return true;
  }
  return false;
}

/// Is nothing said of an output but its name, as people write it who want to see a value within the model?
bool says_name_alone(const onnx::ValueInfo& output) { return output.data_type == 0 && !output.has_shape; }

/// Types of outputs that the file does not say, by reading the model for two sizes: what differs is open.
/// False where it can be read for neither, and why.
bool find_types(const onnx::Model& model, const std::vector<size_t>& unsaid, const Reading& reading,
                SessionModel& session, std::string& why) {
  const std::set<std::string> names = named_dimensions(session.inputs);
  for (const int64_t size : {2, 64}) {
    Bindings first, second;
    for (const std::string& name : names) {
      first[name] = size;
      second[name] = size + 1;
    }
    const auto one = try_to_read(model, session.inputs, first, reading, &why),
               other = names.empty() ? one : try_to_read(model, session.inputs, second, reading, &why);
    if (!one || !other) continue;
    for (const size_t i : unsaid) {
      const Type& type = one->graph.type(one->outputs[i].value);
      const Shape &a = type.shape, &b = other->graph.type(other->outputs[i].value).shape;
      if (says_name_alone(model.graph.outputs[i])) session.outputs[i].type.dtype = type.dtype;
      if (a.rank() != b.rank()) continue;
      Shape found;
      const std::string own = onnx::as_word(session.outputs[i].name);
      for (int d = 0; d < a.rank(); ++d)
        found.push_back(a[d] == b[d]        ? a[d]
                        : names.size() == 1 ? Dim::named(*names.begin())
                                            : Dim::named(fmt::format("{}_{}", own, d)));
      session.outputs[i].type.shape = found;
    }
    return true;
  }
  return false;
}

/// What the file does not say of its outputs. False where it cannot be known how large they are.
bool complete(const onnx::Model& model, const std::function<Reading()>& reading_anew, SessionModel& session) {
  const bool by_data = may_depend_on_data(model.graph) || !model.functions.empty();
  std::vector<size_t> unsaid;
  for (size_t i = 0; i < session.outputs.size(); ++i)
    if (!model.graph.outputs[i].has_shape) unsaid.push_back(i);
  if (!by_data && unsaid.empty()) return true;
  const Reading reading = reading_anew();
  std::string why;
  const bool found = unsaid.empty() || find_types(model, unsaid, reading, session, why);
  for (const size_t i : unsaid)
    if (!found && says_name_alone(model.graph.outputs[i]))
      fail<InputError>(
          "the model does not say the type of its output '{}', and it cannot be read for the sizes that were "
          "tried for its open dimensions: {}",
          model.graph.outputs[i].name, why);
  return !by_data || find_data_axes(model, reading, session);
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
  session.compile.choose_alike = true;
  for (const onnx::ValueInfo& input : model->graph.inputs) {
    if (onnx::find_initialiser(*model, input.name)) continue;
    if (!input.has_shape)
      fail<InputError>("{}: the model does not say the shape of its input '{}'", path.string(), input.name);
    session.inputs.push_back(described(input));
  }
  for (const onnx::TensorProto& tensor : model->graph.initialisers)
    session.constant_bytes += bytes_of(tensor);
  for (const onnx::ValueInfo& output : model->graph.outputs)
    session.outputs.push_back(says_name_alone(output) ? SessionValue{output.name, {}} : described(output));
  // Now, not when it is first run: by then another file may be there.
  const auto files = std::make_shared<onnx::ExternalFiles>();
  onnx::open_external(*model, *files);
  const auto weights = std::make_shared<onnx::LateInitialisers>(model, files);
  const auto reading = [files, weights] { return Reading{files, weights->arrays()}; };
  const bool known = complete(*model, reading, session);
  session.decisions = [model, reading, inputs = session.inputs](const Bindings& sizes) {
    return read_whole(*model, inputs, sizes, reading()).decisions;
  };
  session.require_unchanged = [files] { files->require_unchanged(); };
  session.graph = [model, reading, weights, known, inputs = session.inputs, outputs = session.outputs,
                   path](const Bindings& sizes) {
    const Reading own = reading();
    onnx::Imported imported = read_whole(*model, inputs, sizes, own);
    weights->keep_fetched(own.weights);
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
        fail<InputError>(
            "{}: how large its output '{}' is, depends on data{}", path.string(), names[i],
            known ? " for some sizes alone"
                  : ", which was not found out when it was opened: it takes none of the sizes that "
                    "were tried for its open dimensions. Give it numbers for some of them");
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
