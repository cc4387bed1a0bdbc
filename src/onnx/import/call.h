// One ONNX node on its way in, and the rules that write it in Millrace's operators: one file an operator, or
// a family of operators that share their code.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/error.h>
#include <millrace/graph.h>

#include "onnx/import/control.h"
#include "onnx/import/learning.h"
#include "onnx/model.h"
#include "ops/build.h"

namespace millrace::onnx {

using Ints = std::vector<int64_t>;
/// from, from + 1 … below `to`.
Ints numbered(int64_t from, int64_t to);

/// Handed to a rule. What a rule returns are the node's results, in order; those that nobody names may be
/// missing at the end. Errors that it throws are told with the node's name and operator.
class ImportCall {
 public:
  ImportCall(const NodeProto& node_, int64_t opset_, Graph& graph_, Items operands,
             const std::filesystem::path& folder_, NestedGraphs& nested_, LearningNotes* learning_ = nullptr)
      : node(node_),
        opset(opset_),
        graph(graph_),
        b(graph_),
        folder(folder_),
        nested(nested_),
        learning(learning_),
        operands_(std::move(operands)) {}

  const NodeProto& node;
  int64_t opset;  // of the node's domain
  Graph& graph;
  ops::Build b;
  const std::filesystem::path& folder;  // of external data
  NestedGraphs& nested;
  LearningNotes* const learning;  // of a model that is to be trained on, else null

  /// Operands, those that are left out counted; given(k) is false for these.
  int count() const { return static_cast<int>(operands_.size()); }
  bool given(int k) const { return k < count() && operands_[static_cast<size_t>(k)].is_something(); }
  /// Operand k. InputError when it is left out, no tensor, or of a size that depends on data.
  Value operand(int k) const;
  Value operator[](int k) const { return operand(k); }
  /// Operand k as it is, whatever it is.
  const Item& item(int k) const;
  bool is_texts(int k) const { return given(k) && item(k).form == Item::Form::texts; }
  /// Operand k, which must be texts, or a sequence.
  const Texts& texts(int k) const;
  const std::vector<Item>& sequence(int k) const;
  const Type& type(int k) const { return graph.type(operand(k)); }
  const Shape& shape(int k) const { return type(k).shape; }
  int rank(int k) const { return shape(k).rank(); }
  DType dtype(int k) const { return type(k).dtype; }

  /// Operand k as large as it can be, where its size depends on data.
  Value buffer(int k) const;
  bool bounded(int k) const { return given(k) && item(k).bounded_axis >= 0; }
  /// How large it is along an axis, i64[].
  Value true_size(int k, int64_t axis) const;

  /// What an operand holds where that is known now, else null.
  const Array* known(int k) const { return given(k) ? graph.constant_value(operand(k)) : nullptr; }
  /// What an operand holds, which must be known, since sizes depend on it. UnknownInputs when it is not.
  const Array& known_array(int k) const;
  Ints known_ints(int k) const;
  int64_t known_int(int k) const;
  double known_number(int k) const;

  bool has(std::string_view attribute) const { return node.find(attribute) != nullptr; }
  /// What an operand of sizes holds, known or between bounds. UnknownInputs when neither.
  struct Said {
    Ints least, most;
    Value values;  // i64[n]
    bool known(size_t i) const { return least[i] == most[i]; }
    bool known() const { return least == most; }
  };
  Said sizes_said(int k) const;
  Value element(Value list, int64_t i);  // i64[] of an i64[n]
  /// Of each element of a shape its position along an axis, i64.
  Value places(const Shape& shape, int64_t axis);
  /// What lies at indices along an axis.
  Value gather(Value x, Value at, int64_t axis);
  /// The positions from … to of an axis.
  Value part(Value x, int64_t axis, int64_t from, int64_t to);
  /// So many positions more in front of and behind those of an axis.
  Value pad(Value x, int64_t axis, int64_t before, int64_t behind, double value = 0);
  /// Values one behind the other along an axis; along one that they do not have yet.
  Value concat(const std::vector<Value>& parts, int64_t axis);
  Value stacked(const std::vector<Value>& slices, int64_t axis);

  int64_t integer(std::string_view attribute, std::optional<int64_t> fallback = std::nullopt) const;
  double number(std::string_view attribute, std::optional<double> fallback = std::nullopt) const;
  std::string text(std::string_view attribute, std::optional<std::string> fallback = std::nullopt) const;
  Ints ints(std::string_view attribute, std::optional<Ints> fallback = std::nullopt) const;
  std::vector<double> numbers(std::string_view attribute,
                              std::optional<std::vector<double>> fallback = std::nullopt) const;
  const AttributeProto& attribute(std::string_view name) const;
  /// The attribute `dtype`, else `usual`.
  DType said_dtype(DType usual) const;
  /// ONNX's axes of an operand (attribute or operand since some opset): counted from 0.
  int64_t axis(int64_t axis, int rank) const;
  /// The axes that operand `from` says, else the attribute `axes`; nullopt when neither does.
  std::optional<Ints> axes(int from, int rank) const;
  /// Those of a Reduce…: all of them, or with noop_with_empty_axes none, where it says none.
  Ints reduced_axes(int rank) const;

  Value scalar(DType dtype, double value) const { return graph.scalar(dtype, value); }
  Value constant(const Array& array) const { return graph.constant(array); }
  Value ints_constant(const Ints& values) const;
  Value whole(int64_t value) const;  // i64[]
  Value fill(Value like, double value) { return b.fill(like, value); }
  Value clamp(Value x, double low, double high);
  /// Where x stands to a number as an operator says: "greater", "equal" ….
  Value compare(std::string_view op, Value x, double number) { return graph.add(op, {x, fill(x, number)}); }

  /// Why this node cannot be had, and what would help.
  [[noreturn]] void refuse(const std::string& reason) const;
  /// Why sizes that depend on data do not go through it: UnknownInputs, for they may be known.
  [[noreturn]] void refuse_sizes(const std::string& reason) const;
  /// Of a tensor one size may depend on data.
  [[noreturn]] void refuse_two_sizes() const {
    refuse_sizes("two of its result's sizes depend on data, and Millrace has room for one");
  }

  const Items& items() const { return operands_; }
  /// The same call in another graph, of other operands.
  ImportCall with(Graph& other, Items operands) const {
    return {node, opset, other, std::move(operands), folder, nested, learning};
  }

 private:
  Items operands_;
};

/// Why something cannot be imported: sizes, or what is computed at all, depend on values that only the inputs
/// say, which are named.
struct UnknownInputs : InputError {
  UnknownInputs(const std::string& message, std::vector<std::string> names, bool told = false)
      : InputError(message), inputs(std::move(names)), inputs_told(told) {}
  std::vector<std::string> inputs;
  bool inputs_told;  // the message says the node already
};
/// The names of the graph's inputs that values depend on.
std::vector<std::string> inputs_behind(const Graph& graph, const std::vector<Value>& values);

/// What an operator means and what it can be told, ONNX's specification says, for each opset: a rule declares
/// neither.
struct ImportRule {
  std::string_view name;  // "Conv", "ai_onnx_ml_Scaler"
  Items (*run)(ImportCall& call);
};

/// Null for an operator without one.
const ImportRule* find_import_rule(std::string_view name);
std::vector<std::string> import_rule_names();

}  // namespace millrace::onnx

/// Defines the rule of an operator: MILLRACE_ONNX_IMPORT(Conv) { return {call.graph.add(…)}; }. CMake finds
/// it by this word in the files of src/onnx/import/ and writes the list that onnx/import/rules.cpp includes.
#define MILLRACE_ONNX_IMPORT(NAME)                                                  \
  static ::millrace::onnx::Items import_##NAME(::millrace::onnx::ImportCall& call); \
  const ::millrace::onnx::ImportRule& onnx_import_##NAME() {                        \
    static const ::millrace::onnx::ImportRule rule{#NAME, import_##NAME};           \
    return rule;                                                                    \
  }                                                                                 \
  static ::millrace::onnx::Items import_##NAME([[maybe_unused]] ::millrace::onnx::ImportCall& call)
