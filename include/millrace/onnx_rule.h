// How an operator writes itself as ONNX.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <millrace/graph.h>

namespace millrace {

using OnnxAttribute = std::variant<int64_t, float, std::vector<int64_t>, std::string, std::vector<float>,
                                   std::vector<std::string>>;
using OnnxAttributes = std::vector<std::pair<std::string, OnnxAttribute>>;

/// The ONNX graph that is being written; values are names.
class OnnxBuilder {
 public:
  virtual ~OnnxBuilder() = default;
  /// The version of ONNX's operators.
  virtual int opset() const = 0;
  /// Appends a node with one result and returns its name. An empty input is one that is left out. A type of
  /// another domain than ONNX's own has that in front: "ai.onnx.ml.TreeEnsembleRegressor".
  virtual std::string node(const std::string& type, const std::vector<std::string>& inputs,
                           const OnnxAttributes& attributes = {}) = 0;
  /// The same of a node with several results.
  virtual std::vector<std::string> nodes(const std::string& type, const std::vector<std::string>& inputs,
                                         int results, const OnnxAttributes& attributes = {}) = 0;
  /// A constant, and one of whole numbers in one dimension.
  virtual std::string constant(const Array& array) = 0;
  virtual std::string ints(const std::vector<int64_t>& values) = 0;
  /// The 1-D i64 tensor of a shape; named dimensions are read from the model's inputs.
  virtual std::string shape_of(const Shape& shape) = 0;
  /// ONNX's number of a dtype (TensorProto.DataType).
  virtual int64_t data_type(DType dtype) const = 0;
};

/// One node on its way out.
struct OnnxCall {
  OnnxBuilder& onnx;
  const Graph& graph;  // that the node is of
  const Node& node;
  std::vector<std::string> operands;  // names
  std::vector<Type> types;            // of the operands
  std::vector<bool> wanted;           // which results are read
  /// Of operands that are trained weights or constants what they hold; null of others.
  std::vector<const Array*> values;
  const Attributes& attributes() const { return node.attributes; }
  /// A constant of the first operand's dtype.
  std::string scalar(double value) const { return onnx.constant(Array::scalar(types[0].dtype, value)); }
  /// One ONNX node as the node's only result.
  std::vector<std::string> one(const std::string& type, const std::vector<std::string>& inputs,
                               const OnnxAttributes& attributes = {}) const {
    return {onnx.node(type, inputs, attributes)};
  }
};

}  // namespace millrace
