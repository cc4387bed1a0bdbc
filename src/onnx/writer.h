// Builds an ONNX GraphProto node by node; knows ONNX's messages, not our operators.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <millrace/array.h>
#include <millrace/graph.h>
#include <millrace/onnx_rule.h>

#include "base/wire.h"

namespace millrace::onnx {

/// A TensorProto.
WireWriter tensor_message(const std::string& name, const Array& array);

/// Graphs that a node carries, by the names of the attributes.
using OnnxGraphs = std::vector<std::pair<std::string, WireWriter>>;

class GraphWriter : public OnnxBuilder {
 public:
  explicit GraphWriter(int opset) : opset_(opset) {}
  int opset() const override { return opset_; }
  /// A writer for a graph that a node of this one carries: its names are none of this one's, which it may
  /// use.
  GraphWriter inner();
  /// Declares a model input. Its named dimensions become known to shape_of().
  void input(const std::string& name, const Type& type);
  /// The same of an input of texts.
  void text_input(const std::string& name, const Shape& shape);
  /// From texts to the places of the same in `vocabulary`, counted from 1; any other text is 0.
  std::string text_ids(const std::string& texts, const std::vector<std::pair<std::string, int64_t>>& ids);
  void output(const std::string& name, const Type& type);
  /// An initialiser under a given name.
  void weight(const std::string& name, const Array& array);
  /// An initialiser with a name of its own.
  std::string constant(const Array& array) override;
  std::string ints(const std::vector<int64_t>& values) override;
  int64_t data_type(DType dtype) const override;

  /// A name that nothing has yet.
  std::string fresh(const std::string& hint);
  /// fresh() gives no name that was taken before: those of inputs, weights and outputs.
  void take(const std::string& name) { taken_.insert(name); }
  std::string node(const std::string& type, const std::vector<std::string>& inputs,
                   const OnnxAttributes& attributes = {}) override;
  std::vector<std::string> nodes(const std::string& type, const std::vector<std::string>& inputs, int results,
                                 const OnnxAttributes& attributes = {}) override;
  /// Appends a node that carries graphs and returns its results' names.
  std::vector<std::string> nodes(const std::string& type, const std::vector<std::string>& inputs, int results,
                                 const OnnxAttributes& attributes, const OnnxGraphs& graphs);
  /// A node whose result has a given name.
  void named_node(const std::string& type, const std::vector<std::string>& inputs, const std::string& result);
  std::string shape_of(const Shape& shape) override;
  /// Names of nodes appended from now on begin with this.
  void set_location(const std::string& location) { location_ = location; }
  /// Is there an operator of the domain ai.onnx.ml?
  bool learns_otherwise() const { return *ml_; }

  /// The GraphProto. Of the initialisers only those that a node reads: statistics of training, such as the
  /// batches counted by batch norm, are nothing to the model, and ONNX Runtime warns of them.
  WireWriter finish(const std::string& name) const;

 private:
  std::string dim_of(const Dim& dim);
  void know_dims(const std::string& name, const Shape& shape);
  void append(const std::string& type, const std::vector<std::string>& inputs,
              const std::vector<std::string>& results, const OnnxAttributes& attributes,
              const OnnxGraphs& graphs = {});

  int opset_;
  WireWriter nodes_, inputs_, outputs_;
  std::vector<std::pair<std::string, WireWriter>> initialisers_;
  std::shared_ptr<std::set<std::string>> read_ =
      std::make_shared<std::set<std::string>>();              // also by inner()
  std::shared_ptr<bool> ml_ = std::make_shared<bool>(false);  // also by inner()
  std::map<std::string, std::pair<std::string, int>> dims_;   // name → input and axis that have it
  std::map<std::string, std::string> dim_values_;             // name → 1-element tensor
  std::string location_, prefix_;
  int counter_ = 0;
  std::set<std::string> taken_;
};

}  // namespace millrace::onnx
