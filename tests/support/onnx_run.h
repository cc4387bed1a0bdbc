// An ONNX model run once for given inputs of any form.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <millrace/program.h>

#include "onnx/import/import.h"
#include "onnx/model.h"

namespace millrace::test {

/// What goes into and comes out of an ONNX model at its edge: tensors, tensors of texts, sequences,
/// optionals.
struct HostValue {
  enum class Form { nothing, tensor, texts, sequence };
  Form form = Form::nothing;  // nothing: an optional that holds nothing
  Array array;
  onnx::Texts texts;
  std::vector<HostValue> items;  // of a sequence

  static HostValue of(Array array) {
    return {.form = Form::tensor, .array = std::move(array), .texts = {}, .items = {}};
  }
  static HostValue of(onnx::Texts texts) {
    return {.form = Form::texts, .array = {}, .texts = std::move(texts), .items = {}};
  }
  static HostValue of(std::vector<HostValue> items) {
    return {.form = Form::sequence, .array = {}, .texts = {}, .items = std::move(items)};
  }
};

struct Ran {
  std::vector<HostValue> outputs;
  /// Inputs that were told when the model was read, since sizes, or what is computed at all, depend on them:
  /// nodes that depend on nothing else were computed then, by the reference back end.
  std::vector<std::string> known;
  onnx::Imported imported;           // what was run
  std::vector<LaunchInfo> launches;  // of the compiled program
};

/// Imports a model for these inputs and runs it, compiled or (`reference`) by the reference back end. Texts
/// are written into the model, as initialisers; of sequences the tensors are inputs ("s.0", "s.1" …).
/// InputError as onnx::import_model() throws, or when an input is missing.
Ran run_model(const onnx::Model& model, const std::map<std::string, HostValue>& inputs,
              bool reference = false);

}  // namespace millrace::test
