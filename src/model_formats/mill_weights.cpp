#include "model_formats/mill_weights.h"

#include <xxhash.h>

#include "base/format.h"
#include "model_formats/mill.h"

namespace millrace::mill {

int64_t Weights::number_of(const Array& array) {
  if (const std::optional<int64_t> same = itself(array)) return *same;
  const XXH128_hash_t hash = XXH3_128bits(array.data(), static_cast<size_t>(array.bytes()));
  std::vector<int64_t>& like = by_hash_[{hash.high64, hash.low64}];
  for (const int64_t number : like)
    if (arrays_[static_cast<size_t>(number)].identical(array)) return number;
  like.push_back(static_cast<int64_t>(arrays_.size()));
  by_place_.emplace(array.data(), like.back());
  arrays_.push_back(array);
  return like.back();
}

Array Weights::known(const Array& array) const {
  if (itself(array)) return array;
  const XXH128_hash_t hash = XXH3_128bits(array.data(), static_cast<size_t>(array.bytes()));
  const auto like = by_hash_.find({hash.high64, hash.low64});
  if (like != by_hash_.end())
    for (const int64_t number : like->second)
      if (arrays_[static_cast<size_t>(number)].identical(array)) return arrays_[static_cast<size_t>(number)];
  return array;
}

std::optional<int64_t> Weights::itself(const Array& array) const {
  const auto at = by_place_.find(array.data());
  if (at == by_place_.end() || arrays_[static_cast<size_t>(at->second)].type() != array.type())
    return std::nullopt;
  return at->second;
}

Graph with_known_constants(const Graph& graph, const Weights& weights) {
  Rewriter rewrite(graph);
  rewrite.go_through([&](int i) {
    const Array* const constant = graph.constant_value({i, 0});
    if (!constant || constant->bytes() < kLeastOutside) return false;
    rewrite.graph().set_origin(graph.node(i).origin);
    rewrite.set({i, 0}, rewrite.graph().constant(weights.known(*constant)));
    return true;
  });
  return rewrite.finish();
}

Graph without_constants(const Graph& graph, Weights& weights, const std::vector<SizedConstant>& sized) {
  Rewriter rewrite(graph);
  size_t inputs = 0;
  const auto written = [&](const Array& constant, int i) {
    if (constant.bytes() < kLeastOutside) return rewrite.graph().constant(constant);
    return rewrite.graph().input(fmt::format("{}{}.{}", kConstant, weights.number_of(constant), i),
                                 constant.type());
  };
  for (int i = 0; i < graph.size(); ++i) {
    const Value value{i, 0};
    rewrite.graph().set_origin(graph.node(i).origin);
    const Array* const constant = graph.constant_value(value);
    if (graph.is_input(value)) {
      const std::string& name = graph.input_names()[inputs++];
      if (name.starts_with(kConstant)) fail<InputError>("an input's name begins with a control character");
      rewrite.set(value, rewrite.graph().input(name, graph.type(value)));
    } else if (constant && !sized.empty() && !sized.at(static_cast<size_t>(i)).kept.empty()) {
      const SizedConstant& own = sized[static_cast<size_t>(i)];
      rewrite.set(value, write_sized(rewrite.graph(), written(own.kept, i), own, constant->shape()));
    } else if (constant) {
      rewrite.set(value, written(*constant, i));
    } else {
      rewrite.copy(i);
    }
  }
  return rewrite.finish();
}

Graph with_constants(const Graph& graph, const std::function<const Array*(size_t)>& constant) {
  Rewriter rewrite(graph);
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const Value input = graph.inputs()[i];
    const Array* const known = constant(i);
    rewrite.set(input, known ? rewrite.graph().constant(*known)
                             : rewrite.graph().input(graph.input_names()[i], graph.type(input)));
  }
  for (int i = 0; i < graph.size(); ++i)
    if (!graph.is_input({i, 0})) rewrite.copy(i);
  return rewrite.finish();
}

Graph whole_graph(const SessionModel& model, const Bindings& sizes) {
  Graph graph = model.graph(sizes);
  if (model.weights.empty()) return graph;
  return with_constants(graph, [&](size_t i) {
    return i < model.inputs.size() ? nullptr : &model.weights.at(i - model.inputs.size());
  });
}

}  // namespace millrace::mill
