// ONNX models as graphs (github.com/onnx/onnx, docs/Operators.md; operator sets 7 to 27).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <millrace/graph.h>

#include "onnx/import/item.h"
#include "onnx/import/learning.h"
#include "onnx/model.h"

namespace millrace::onnx {

struct ImportOptions {
  /// Types of the model's inputs. Those that are not given are as the model says, if it says all sizes. An
  /// input that is an initialiser too is that, unless its type is given.
  std::map<std::string, Type> inputs = {};
  /// Where large external data is to lie, rather than be copied; null: nowhere. Nobody may write to it.
  std::shared_ptr<ExternalFiles> files = nullptr;
  /// Initialisers that were read before, by their names. Nobody may write to them.
  std::map<std::string, Array> read = {};
  /// The model is to be trained on.
  std::optional<Learning> learning = std::nullopt;
};

struct Imported {
  /// Inputs in the model's order, but for those that are initialisers; outputs are the tensors of the
  /// model's, by their names: behind one whose size depends on data that size ("name.size"), of a sequence
  /// "name.0", "name.1" ….
  Graph graph;
  std::vector<Item> outputs;  // the model's: values of the graph
  /// What was decided from the sizes of tensors by more than sums and products (a smaller one of two, whether
  /// two are equal): the nodes, with what they were given, in order. For other sizes the graph is made in
  /// another way only where these differ.
  std::vector<std::string> decisions;
  /// Of a model that is to be trained on: its batch norms. The last input of its graph of training is a
  /// random key ("random", i64[2]).
  std::vector<LearningNorm> norms;
  int64_t fixed_norms = 0;
};

/// The graph of a model for given types of its inputs. InputError names the node, its operator, the reason
/// and what would help; it is UnknownInputs (onnx/import/call.h) where it would help to know inputs.
Imported import_model(const Model& model, const ImportOptions& options);

}  // namespace millrace::onnx
