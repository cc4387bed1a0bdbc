// ONNX models as graphs (github.com/onnx/onnx, docs/Operators.md; operator sets 7 to 27).
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <millrace/array.h>
#include <millrace/graph.h>

#include "onnx/model.h"

namespace millrace::onnx {

struct ImportOptions {
  /// Types of the model's inputs. Those that are not given are as the model says, if it says all sizes. An
  /// input that is an initialiser too is that, unless its type is given.
  std::map<std::string, Type> inputs = {};
  /// Values of inputs that are known already: they become constants. Inputs that sizes depend on need one.
  std::map<std::string, Array> known = {};
};

struct Imported {
  Graph graph;  // inputs in the model's order but for those that are known; outputs as the model names them
  /// Initialisers that became constants: trained weights among them.
  std::vector<std::pair<std::string, Value>> weights;
};

/// The graph of a model for given types of its inputs. InputError names the node, its operator, the reason
/// and what would help.
Imported import_model(const Model& model, const ImportOptions& options);

/// Operators of ONNX that are imported: "Conv", "ai.onnx.ml.Scaler".
std::vector<std::string> imported_operators();

}  // namespace millrace::onnx
