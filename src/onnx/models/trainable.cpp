#include "onnx/models/trainable.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <millrace/error.h>
#include <millrace/operator.h>

#include "onnx/import/call.h"
#include "onnx/models/open_sizes.h"
#include "ops/matmul.h"

namespace millrace::onnx {
namespace {

/// Of f32.
bool is_finite(const Array& array) {
  const std::span<const float> values = array.as<float>();
  return std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
}

/// What hides places from others, or picks some: numbers that make all others nothing, or a table of two
/// numbers alone, as no training leaves it. Of f32.
bool is_mask(const Array& array) {
  constexpr float hidden = 1e4F;  // and more: masks of f16 have this one
  constexpr int64_t chance = 16;  // so few numbers may be of two by chance
  const std::span<const float> values = array.as<float>();
  const auto is_hidden = [](float value) { return std::abs(value) >= hidden; };
  if (std::any_of(values.begin(), values.end(), is_hidden)) return true;
  if (array.shape().rank() < 2 || array.count() < chance) return false;
  const float one = values.front();
  const auto other = std::find_if(values.begin(), values.end(), [&](float value) { return value != one; });
  return other != values.end() &&
         std::all_of(other, values.end(), [&](float value) { return value == one || value == *other; });
}

/// What could be a weight by itself, whatever reads it.
std::set<std::string> candidates_of(const Model& model, const std::set<std::string>& statistics) {
  std::set<std::string> names;
  for (const TensorProto& tensor : model.graph.initialisers) {
    const std::optional<DType> dtype = dtype_of(tensor.data_type);
    if (!dtype || !dtype->is_float() || dtype->bits < 16 || tensor.dims.empty()) continue;
    if (std::find(tensor.dims.begin(), tensor.dims.end(), 0) != tensor.dims.end()) continue;
    if (statistics.contains(tensor.name)) continue;
    const Array array = array_of(tensor, model.folder).converted(f32);
    if (is_finite(array) && !is_mask(array)) names.insert(tensor.name);
  }
  return names;
}

std::set<std::string> statistics_of(const Model& model) {
  std::set<std::string> names;
  for (const NodeProto& node : model.graph.nodes) {
    if (node.op_type != "BatchNormalization" || !node.domain.empty() || node.inputs.size() < 5) continue;
    for (const size_t k : {size_t{3}, size_t{4}}) {
      const TensorProto* const tensor = find_initialiser(model, node.inputs[k]);
      const std::optional<DType> dtype = tensor ? dtype_of(tensor->data_type) : std::nullopt;
      if (dtype && dtype->is_float()) names.insert(node.inputs[k]);
    }
  }
  return names;
}

/// Goes through the graph of a model whose candidates are inputs.
class Search {
 public:
  Search(const Graph& graph, const std::set<std::string>& candidates, const std::set<std::string>& statistics)
      : graph_(graph), facts_(static_cast<size_t>(graph.size())) {
    for (size_t i = 0; i < graph.inputs().size(); ++i) {
      const std::string& name = graph.input_names()[i];
      Facts& facts = facts_[static_cast<size_t>(graph.inputs()[i].node)];
      if (candidates.contains(name))
        facts.candidates.insert(name);
      else if (!statistics.contains(name))
        facts.of_data = true;
    }
  }

  std::set<std::string> run() {
    for (int i = 0; i < graph_.size(); ++i)
      if (!graph_.is_input({i, 0})) visit(i);
    return weights_;
  }

 private:
  struct Facts {
    bool of_data = false;              // does it depend on what the model is given?
    bool learnt = false;               // and on weights?
    std::set<std::string> candidates;  // of what does not depend on data: what it is made of
  };

  void visit(int index) {
    const Node& node = graph_.node(index);
    Facts& facts = facts_[static_cast<size_t>(index)];
    std::set<std::string> met;
    bool indexed = false, behind_product = false;
    for (const Value operand : node.operands) {
      const Facts& own = facts_[static_cast<size_t>(operand.node)];
      met.insert(own.candidates.begin(), own.candidates.end());
      if (!own.of_data) continue;
      facts.of_data = true;
      facts.learnt = facts.learnt || own.learnt;
      indexed = indexed || graph_.type(operand).dtype.is_int();
      behind_product = behind_product || is_product(operand);
    }
    if (!facts.of_data) {
      facts.candidates = std::move(met);
      return;
    }
    const OpClass kind = node.op->op_class;
    const bool mixes =
        kind == OpClass::heavy || kind == OpClass::composite || node.op->runs_body() || indexed;
    if (!mixes && !facts.learnt) return;
    const bool adds = node.op->scalar_op == ScalarOp::add && behind_product;
    for (const std::string& name : met) {
      if (!mixes && !adds && count_of(name) == 1) continue;
      weights_.insert(name);
      facts.learnt = true;
    }
  }

  /// Is it the result of a product, in whatever shape?
  bool is_product(Value value) const {
    while (graph_.node(value).op->op_class == OpClass::view) value = graph_.node(value).operands[0];
    return graph_.node(value).op->op_class == OpClass::heavy;
  }

  int64_t count_of(const std::string& name) const {
    const auto& names = graph_.input_names();
    const auto at = std::find(names.begin(), names.end(), name) - names.begin();
    return graph_.type(graph_.inputs()[static_cast<size_t>(at)]).shape.count();
  }

  const Graph& graph_;
  std::vector<Facts> facts_;
  std::set<std::string> weights_;
};

}  // namespace

std::set<std::string> product_weights(const Graph& graph) {
  std::map<Value, std::string> inputs;
  for (size_t i = 0; i < graph.inputs().size(); ++i)
    if (graph.type(graph.inputs()[i]).shape.rank() == 2)
      inputs.emplace(graph.inputs()[i], graph.input_names()[i]);
  std::set<std::string> names;
  for (int i = 0; i < graph.size(); ++i) {
    if (!ops::matmul_of(graph.node(i))) continue;
    for (Value value : graph.node(i).operands) {
      while (!graph.is_input(value) && graph.node(value).operands.size() == 1)
        value = graph.node(value).operands[0];
      if (const auto found = inputs.find(value); found != inputs.end()) names.insert(found->second);
    }
  }
  return names;
}

const TensorProto* find_initialiser(const Model& model, const std::string& name) {
  for (const TensorProto& tensor : model.graph.initialisers)
    if (tensor.name == name) return &tensor;
  return nullptr;
}

Trainable trainable(const Model& model, const ImportOptions& options) {
  const std::set<std::string> statistics = statistics_of(model);
  std::set<std::string> candidates = candidates_of(model, statistics);
  ImportOptions own = options;
  own.learning->training = false;
  std::set<std::string> weights;
  while (true) {
    own.learning->inputs = candidates;
    own.learning->inputs.insert(statistics.begin(), statistics.end());
    try {
      weights = Search(import_open(model, own).graph, candidates, statistics).run();
      break;
    } catch (const UnknownInputs& error) {
      size_t known = 0;
      for (const std::string& name : error.inputs) known += candidates.erase(name);
      if (known == 0) throw;
    }
  }
  Trainable found;
  for (const TensorProto& tensor : model.graph.initialisers) {
    if (weights.contains(tensor.name)) found.parameters.push_back(tensor.name);
    if (statistics.contains(tensor.name)) found.statistics.push_back(tensor.name);
  }
  return found;
}

}  // namespace millrace::onnx
