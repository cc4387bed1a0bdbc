// ONNX models as graphs (github.com/onnx/onnx, docs/Operators.md; operator sets 7 to 27).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <millrace/array.h>
#include <millrace/graph.h>

#include "onnx/host_value.h"
#include "onnx/import/learning.h"
#include "onnx/model.h"

namespace millrace::onnx {

struct ImportOptions {
  /// Types of the model's inputs. Those that are not given are as the model says, if it says all sizes. An
  /// input that is an initialiser too is that, unless its type is given.
  std::map<std::string, Type> inputs = {};
  /// Values of inputs that are known already: they become constants. Inputs that sizes depend on need one.
  std::map<std::string, Array> known = {};
  /// Inputs that are more than a tensor: sequences, optionals and texts as they are when the model runs.
  /// Their tensors become inputs of the graph ("name", or "name.0", "name.1" …, of which only the type
  /// counts), their texts and what else they are is known.
  std::map<std::string, HostValue> values = {};
  /// Of these, those whose tensors are known, too.
  std::set<std::string> known_values = {};
  /// The model is to be trained on.
  std::optional<Learning> learning = std::nullopt;
};

/// How an output of the model is made of the graph's outputs.
struct OutputShape {
  HostValue::Form form = HostValue::Form::nothing;
  int at = -1;  // of a tensor: the graph's output
  /// Of a tensor whose size along an axis depends on data: output `at` has the most that it can be, and
  /// output `size_at` (i64[], "name.size") says how much of it counts.
  int bounded_axis = -1, size_at = -1;
  Texts texts;
  std::vector<OutputShape> items;
};

struct Imported {
  /// Inputs in the model's order but for those that are known; outputs as the model names them, a tensor
  /// each, unless `outputs` says more.
  Graph graph;
  std::vector<OutputShape> outputs;  // the model's
  /// Of a model that is to be trained on: its batch norms. The last input of its graph of training is a
  /// random key ("random", i64[2]).
  std::vector<LearningNorm> norms;
  int64_t fixed_norms = 0;
};

/// The graph of a model for given types of its inputs. InputError names the node, its operator, the reason
/// and what would help; it is UnknownInputs (onnx/import/call.h) where it would help to know inputs.
Imported import_model(const Model& model, const ImportOptions& options);

/// Operators of ONNX that are imported: "Conv", "ai.onnx.ml.Scaler".
std::vector<std::string> imported_operators();

}  // namespace millrace::onnx
