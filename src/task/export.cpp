// A task's model as .onnx, with all that its inputs and outputs know.
#include "onnx/export.h"

#include <algorithm>
#include <set>

#include "base/format.h"
#include "base/utf8.h"
#include "data/codecs/pictures/frame_graph.h"
#include "optim/model_scope.h"
#include "task/calibrated.h"
#include "task/json_text.h"
#include "task/model.h"
#include "task/session_model.h"

namespace millrace::task {
namespace {

/// The place of an input's first array among the graph's inputs.
size_t first_field(const Task& task, const Input& input) {
  size_t at = 0;
  for (const auto& each : task.inputs) {
    if (each.get() == &input) break;
    at += each->fields().size();
  }
  return at;
}

/// The model behind what makes pictures of its size of decoded ones, of each input that takes pictures.
Graph resizing(const Task& task, const Graph& model, int height, int width) {
  std::vector<std::pair<size_t, data::Frame>> frames;
  for (const auto& input : task.inputs)
    if (const auto frame = input->frame(height, width))
      frames.emplace_back(first_field(task, *input), *frame);
  if (frames.empty()) fail<InputError>("the model does not take pictures: none can be resized for it");
  Graph graph;
  std::vector<Value> arguments;
  for (size_t i = 0; i < model.inputs().size(); ++i) {
    Type type = model.type(model.inputs()[i]);
    if (std::any_of(frames.begin(), frames.end(), [&](const auto& frame) { return frame.first == i; })) {
      type.shape[2] = height;
      type.shape[3] = width;
    }
    arguments.push_back(graph.input(model.input_names()[i], type));
  }
  for (const auto& [at, frame] : frames) {
    graph.set_origin(model.input_names()[at]);
    arguments[at] = data::frame_pictures(graph, arguments[at], frame);
  }
  graph.set_outputs(inline_graph(graph, model, arguments), model.output_names());
  return graph;
}

/// Texts that become ids within the model. Each is called as its column, with "_text" behind it where
/// something else is called so.
std::map<int, std::vector<onnx::TextInput>> texts_of(const Task& task, const Graph& graph,
                                                     std::vector<std::string>& notes) {
  const auto& names = graph.input_names();
  std::set<std::string> taken(names.begin(), names.end());
  taken.insert(graph.output_names().begin(), graph.output_names().end());
  std::map<int, std::vector<onnx::TextInput>> all;
  for (const auto& input : task.inputs)
    for (const ExportedTexts& texts : input->exported_texts()) {
      const std::string field = input->prefix() + texts.field;
      const auto found = std::find(names.begin(), names.end(), field);
      MILLRACE_CHECK(found != names.end(), "the model has no array '{}' of texts", field);
      auto& columns = all[static_cast<int>(found - names.begin())];
      if (static_cast<size_t>(texts.column) >= columns.size())
        columns.resize(static_cast<size_t>(texts.column) + 1);
      const std::string column = input->prefix() + stored_text(texts.name);
      std::string name = column;
      while (!taken.insert(name).second) name += "_text";
      if (name != column)
        notes.push_back(fmt::format(
            "the exported model takes the column '{}' as '{}': something else of it is called '{}'",
            stored_text(texts.name), name, column));
      columns[static_cast<size_t>(texts.column)] = {std::move(name), texts.ids};
    }
  for (const auto& [at, columns] : all)
    for (const onnx::TextInput& column : columns)
      MILLRACE_CHECK(!column.name.empty(), "'{}' has columns that are no texts",
                     names[static_cast<size_t>(at)]);
  return all;
}

/// What users of the exported model may want to know; of the only input and output without a name in front.
std::map<std::string, std::string> metadata_of(const Task& task) {
  std::map<std::string, std::string> metadata;
  for (const auto& output : task.outputs) {
    std::string list;  // in JSON, as names may hold any characters
    for (const std::string& name : output->classes()) list += (list.empty() ? "[" : ", ") + json_string(name);
    if (!list.empty()) metadata[output->prefix() + "classes"] = list + "]";
    if (!output->calibration().empty())
      metadata[output->prefix() + "calibration"] = calibration_json(output->calibration());
  }
  for (const auto& input : task.inputs)
    if (const std::string encoding = input->encoding(); !encoding.empty())
      metadata[input->prefix() + "encoding"] = encoding;
  return metadata;
}

}  // namespace

std::string export_model(const Task& task, std::vector<std::string>& notes, int height, int width,
                         int opset) {
  const nn::MergedAdapters merged(*task.network);
  Graph graph = inference_graph(task, 0, {.weights_as_inputs = true});
  if (height > 0) graph = resizing(task, graph, height, width);
  onnx::ExportOptions options;
  const std::string& kind = task.network->model().kind;
  options.name = kind.empty() ? "layers" : kind;
  int at = static_cast<int>(task.fields().size());
  for (const nn::Named& named : optim::tensors_of(*task.network))
    options.weights[at++] = optim::value_of(named);
  options.texts = texts_of(task, graph, notes);
  options.metadata = metadata_of(task);
  options.opset = opset;
  return onnx::export_model(graph, options);
}

}  // namespace millrace::task
