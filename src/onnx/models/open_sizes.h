// Models as graphs whose sizes are open: the importer needs numbers, and trainings want a graph of any batch.
#pragma once

#include "onnx/import/import.h"
#include "onnx/model.h"

namespace millrace::onnx {

/// import_model() for types of inputs with named dimensions: the model is read for two choices of numbers,
/// and what differs between the two graphs is written by the names. InputError, too, where that is
/// impossible: sizes that follow from others by more than a product, or values that depend on sizes.
Imported import_open(const Model& model, const ImportOptions& options);

}  // namespace millrace::onnx
