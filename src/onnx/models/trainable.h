// Which initialisers of a model are its weights.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "onnx/import/import.h"
#include "onnx/model.h"

namespace millrace::onnx {

/// By the names of initialisers, in the order of the file.
struct Trainable {
  std::vector<std::string> parameters;
  std::vector<std::string> statistics;  // the running ones of batch norms
};

/// A file says of no initialiser whether it was learnt. Parameters are those of floating point, with
/// dimensions, that take part in what was learnt: in products, convolutions, lookups, norms and loops on what
/// the model is given, and in any arithmetic on their results. Constants stay: those that only meet the raw
/// input (means and deviations in front), single numbers (but for the bias of a product of one result),
/// values that are not finite, masks (numbers of 10,000 and more in size, or tables of two numbers alone),
/// and what an operator must know when it is read (scales of a Resize). `options`: with `learning`, whose
/// inputs count for nothing. InputError as of import_open().
Trainable trainable(const Model& model, const ImportOptions& options);

/// The tensor of an initialiser, or null.
const TensorProto* find_initialiser(const Model& model, const std::string& name);

/// Of inputs of a graph, matrices that products take, turned round or as they are.
std::set<std::string> product_weights(const Graph& graph);

}  // namespace millrace::onnx
