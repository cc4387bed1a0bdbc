#include "model_formats/onnx_decode.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "base/format.h"
#include "base/words.h"
#include "onnx/external_files.h"
#include "onnx/import/import.h"
#include "onnx/models/texts.h"
#include "onnx/models/trainable.h"
#include "onnx/onnx_file.h"
#include "optim/decode_graph.h"
#include "optim/token_lengths.h"

namespace millrace {
namespace {

constexpr int64_t kUsual = 1024, kLeast = 2;  // tokens

/// What an input is given. `past`: keys and values of tokens before these, of which there are none.
struct Part {
  onnx::ValueInfo info;
  onnx::TextRole role = onnx::TextRole::tokens;
  bool past = false;
};

bool is_past(const onnx::ValueInfo& input) {
  const std::string lower = lower_case(input.name);
  return input.shape.size() >= 3 &&
         (lower.find("past") != std::string::npos || lower.find("cache") != std::string::npos);
}

std::vector<Part> parts_of(const onnx::Model& model) {
  std::vector<Part> parts;
  std::vector<nn::InputSpec> texts;
  for (const onnx::ValueInfo& input : model.graph.inputs) {
    if (onnx::find_initialiser(model, input.name)) continue;
    const std::optional<DType> dtype = onnx::dtype_of(input.data_type);
    if (!dtype || !input.has_shape)
      fail<InputError>("its input '{}' is no tensor of a known shape", input.name);
    parts.push_back({.info = input, .past = is_past(input)});
    if (parts.back().past) continue;
    Shape shape;
    for (const onnx::ValueInfo::Dimension& dim : input.shape)
      shape.push_back(dim.size >= 0 ? Dim(dim.size) : Dim::named(dim.name));
    texts.push_back({input.name, {*dtype, shape}});
  }
  const auto roles = onnx::text_roles(texts);
  if (!roles)
    fail<InputError>(
        "its inputs are not those of a text: tokens [batch, length], maybe with attention_mask, "
        "token_type_ids "
        "and position_ids");
  auto role = roles->begin();
  for (Part& part : parts)
    if (!part.past) part.role = *role++;
  return parts;
}

/// What the model is given besides its tokens, for a text without padding.
Array given(const Part& part, int64_t length) {
  const DType dtype = *onnx::dtype_of(part.info.data_type);
  if (!part.past) {
    Array array(i64, {1, length});
    const std::span<int64_t> numbers = array.as<int64_t>();
    for (int64_t i = 0; i < length; ++i)
      numbers[static_cast<size_t>(i)] = part.role == onnx::TextRole::mask    ? 1
                                        : part.role == onnx::TextRole::types ? 0
                                                                             : i;
    return array.converted(dtype);
  }
  Shape shape;  // the first open size is of texts, the others of tokens
  for (const onnx::ValueInfo::Dimension& dim : part.info.shape)
    shape.push_back(dim.size >= 0 ? dim.size : shape.rank() == 0 ? 1 : 0);
  return Array(dtype, shape);
}

/// The model with initialisers in place of all inputs but the tokens.
onnx::Model with_tokens_alone(const onnx::Model& model, const std::vector<Part>& parts, int64_t length) {
  onnx::Model changed = model;
  auto kept = std::make_shared<std::pair<std::shared_ptr<const void>, std::vector<Array>>>();
  kept->first = model.bytes;
  for (const Part& part : parts) {
    if (!part.past && part.role == onnx::TextRole::tokens) continue;
    const Array& array = kept->second.emplace_back(given(part, length));
    onnx::TensorProto tensor;
    tensor.name = part.info.name;
    tensor.data_type = part.info.data_type;
    tensor.dims = array.shape().sizes();
    tensor.raw = {reinterpret_cast<const char*>(array.data()), static_cast<size_t>(array.bytes())};
    changed.graph.initialisers.push_back(std::move(tensor));
  }
  changed.bytes = kept;
  return changed;
}

/// Which output gives logits: the one that is called so, or the only one of numbers for each place, or else
/// for one. Others are keys and values, or hidden states.
size_t logits_among(const Graph& graph, int64_t length) {
  std::vector<size_t> of_places, of_one;
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    const Type& type = graph.type(graph.outputs()[i]);
    const int rank = type.shape.rank();
    if (!type.dtype.is_float() || rank < 2 || rank > 3) continue;
    const bool each = type.shape[rank - 2] == length, one = type.shape.count() == type.shape.back().size();
    if (!each && !one) continue;
    if (lower_case(graph.output_names()[i]).ends_with("logits")) return i;
    (each ? of_places : of_one).push_back(i);
  }
  const std::vector<size_t>& found = of_places.empty() ? of_one : of_places;
  if (found.size() == 1) return found[0];
  fail<InputError>(
      "{} of its outputs give numbers for each of {} places or for the last one, and none is called logits",
      found.empty() ? "none" : std::to_string(found.size()), length);
}

/// From i64 tokens [1, length] to the logits.
Graph read_for(const onnx::Model& model, const std::vector<Part>& parts,
               const std::map<std::string, Array>& weights, int64_t length) {
  const Part& tokens = *std::find_if(
      parts.begin(), parts.end(), [](const Part& p) { return !p.past && p.role == onnx::TextRole::tokens; });
  const DType dtype = *onnx::dtype_of(tokens.info.data_type);
  onnx::ImportOptions options;
  options.inputs[tokens.info.name] = {dtype, {1, length}};
  options.read = weights;
  const onnx::Imported imported = onnx::import_model(with_tokens_alone(model, parts, length), options);
  Graph graph;
  Value ids = graph.input("tokens", {i64, {1, length}});
  if (dtype != i64) ids = graph.add("cast", {ids}, {{"dtype", dtype}});
  std::vector<Value> outputs = inline_graph(graph, imported.graph, std::span(&ids, 1));
  graph.set_outputs({outputs[logits_among(imported.graph, length)]}, {"logits"});
  return graph;
}

/// For the longest texts that the model takes, from 2 to `most` tokens.
Graph read_for_longest(const onnx::Model& model, const std::vector<Part>& parts,
                       const std::map<std::string, Array>& weights, int64_t most) {
  const auto read = [&](int64_t length) -> std::optional<Graph> {
    try {
      return read_for(model, parts, weights, length);
    } catch (const InternalError&) {
      throw;
    } catch (const Error&) {
      return std::nullopt;
    }
  };
  if (auto graph = read(most)) return std::move(*graph);
  Graph longest = read_for(model, parts, weights, kLeast);
  int64_t low = kLeast, high = most;
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    auto graph = read(middle);
    (graph ? low : high) = middle;
    if (graph) longest = std::move(*graph);
  }
  return longest;
}

}  // namespace

DecodeModel decode_onnx(const std::filesystem::path& path, const DecoderOptions& options) {
  const onnx::Model model = onnx::read_model(path);
  CompileOptions compile;
  compile.precision = options.precision.empty() ? "fp32" : options.precision;
  try {
    const std::vector<Part> parts = parts_of(model);
    int64_t stated = options.longest;
    bool open = true;
    for (const Part& part : parts) {
      if (part.past || part.role != onnx::TextRole::tokens) continue;
      open = part.info.shape[1].size < 0;
      if (!open) stated = part.info.shape[1].size;
      if (part.info.shape[0].size > 1)
        fail<InputError>("it takes {} texts at a time, not any number: export it with a named batch",
                         part.info.shape[0].size);
    }
    if (stated != 0 && stated < kLeast) fail<InputError>("texts of {} tokens: at least {}", stated, kLeast);
    const auto files = std::make_shared<onnx::ExternalFiles>();
    const std::map<std::string, Array> weights = onnx::large_initialisers(model, *files);
    const Graph whole = stated > 0 ? read_for(model, parts, weights, stated)
                                   : read_for_longest(model, parts, weights, kUsual);
    const int64_t length = whole.type(whole.inputs()[0]).shape[1].size();
    std::vector<Graph> shorter;
    if (open)
      for (const int64_t own : optim::compared_lengths(length))
        shorter.push_back(read_for(model, parts, weights, own));
    DecodeModel made = optim::decode_model(whole, shorter, {}, compile);
    made.require_unchanged = [files] { files->require_unchanged(); };
    return made;
  } catch (const InternalError&) {
    throw;
  } catch (const Error& error) {
    fail<InputError>("{}: it cannot go on with texts: {}", path.string(), error.what());
  }
}

}  // namespace millrace
