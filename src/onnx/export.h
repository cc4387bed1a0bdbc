// Graphs as ONNX models (github.com/onnx/onnx, onnx.proto; opsets 13 to 25).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <millrace/array.h>
#include <millrace/graph.h>

namespace millrace::onnx {

/// Texts that the model turns into ids by itself, with ai.onnx.ml's LabelEncoder: one column of a graph input
/// i64 [batch, columns]. Instead of that input the model takes an input of texts for each of its columns,
/// [batch, 1].
struct TextInput {
  std::string name;                                  // of the model's input
  std::vector<std::pair<std::string, int64_t>> ids;  // of texts that differ; any other text is id 0
};

struct ExportOptions {
  std::string name = "millrace";
  /// Graph inputs (by position) that become initialisers: trained weights. The others stay inputs of the
  /// model.
  std::map<int, Array> weights;
  /// Graph inputs, by position, that come from texts: their columns in order. Names must be those of no other
  /// input.
  std::map<int, std::vector<TextInput>> texts = {};
  /// metadata_props, e.g. the class names.
  std::map<std::string, std::string> metadata = {};
  /// The version of ONNX's operators, from oldest_opset to newest_opset; 0: 17, or the first that the graph
  /// can be written in.
  int opset = 0;
};

inline constexpr int oldest_opset = 13, newest_opset = 25;

/// The bytes of an .onnx file. Named dimensions stay named. Composites without an own rule are written
/// through their body. Models with texts or trees import ai.onnx.ml, version 2. InputError when an operator
/// has no counterpart in ONNX, or none in the opset, or the model exceeds protobuf's 2 GB.
std::string export_model(const Graph& graph, const ExportOptions& options);

}  // namespace millrace::onnx
