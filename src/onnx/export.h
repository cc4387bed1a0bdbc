// Graphs as ONNX models (github.com/onnx/onnx, onnx.proto; opset 17, or 18 where pictures are resized; IR 8).
#pragma once

#include <map>
#include <string>

#include <millrace/array.h>
#include <millrace/graph.h>

namespace millrace::onnx {

struct ExportOptions {
  std::string name = "millrace";
  /// Graph inputs (by position) that become initialisers: trained weights. The others stay inputs of the model.
  std::map<int, Array> weights;
  /// metadata_props, e.g. the class names.
  std::map<std::string, std::string> metadata;
};

/// The bytes of an .onnx file. Named dimensions stay named. Composites without an own rule are written through their
/// body. InputError when an operator has no counterpart in ONNX or the model exceeds protobuf's 2 GB.
std::string export_model(const Graph& graph, const ExportOptions& options);

}  // namespace millrace::onnx
