// What a graph that was written for whole texts does to each of their tokens.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include <millrace/decoder.h>
#include <millrace/graph.h>

namespace millrace::optim {

/// A model of the next token, seen token by token: what it does along the axis of the tokens is the same for
/// each, what is known without them (embeddings of places, rotations) are tables by places, and causal
/// attention is all that looks at others.
class TokenGraph {
 public:
  /// `whole`: from i64 tokens [1, length], of 2 or more, then further inputs, to the logits [1, length,
  /// vocabulary] alone, or those of the last place. Sizes are numbers. InputError says what makes a token
  /// depend on others by anything but attention that looks back. `longer`: the same model for longer texts,
  /// whose attention gets a bias here where it gets one there.
  explicit TokenGraph(const Graph& whole, const TokenGraph* longer = nullptr);

  const Graph& graph() const { return graph_; }
  int64_t vocabulary() const;
  /// Most tokens of a sequence: so many places are known.
  int64_t longest() const { return length_; }

  /// The axis of a value that is the tokens'; -1: it has none.
  int axis(Value value) const { return axis_[static_cast<size_t>(value.node)]; }
  /// Whether it comes behind all attention: nobody asks for it but of tokens whose logits are asked for.
  bool late(Value value) const { return late_[static_cast<size_t>(value.node)] != 0; }
  /// Nodes, in order.
  const std::vector<int>& attention() const { return attention_; }
  /// What each of them adds to the scores of keys by how far back they are, as paged_attention takes it: f32
  /// [heads or 1, distances]; empty where nothing is added, and all keys are seen.
  const std::vector<Array>& biases() const { return biases_; }
  /// Whether a node takes the last token of a whole text alone, behind all attention.
  bool takes_last(int node) const;
  /// Where an axis of a node's operand is in its result; -1: it cannot be told.
  int kept(const Node& node, size_t operand, int axis) const;
  /// Whether a value depends on no input.
  bool is_known(Value value) const { return known_without_[static_cast<size_t>(value.node)] != 0; }
  /// What it is then.
  const Array& known(Value value) const;

 private:
  void follow(int index);
  /// Where the tokens' axis is in a result that is the last token alone, as is tried; -1: it is another one.
  int axis_of_last(int node) const;
  /// What is added by distance, for each head; −∞: such keys are hidden.
  using ByDistance = std::vector<std::vector<double>>;
  Array bias_of(const Node& attention);
  Array bias_of(ByDistance heads) const;
  ByDistance heads_of(const Node& attention, const Array& mask) const;
  void find_late();

  Graph graph_;
  int64_t length_ = 0;
  std::vector<int> axis_;
  std::vector<char> late_, known_without_;
  std::vector<int> attention_, last_alone_;
  std::vector<Array> biases_;
  std::map<std::pair<Value, bool>, ByDistance> by_distance_;  // of masks, with or without a rule to look back
  const TokenGraph* longer_;
  mutable std::map<Value, Array> known_;
};

/// The graph of a step of it, as DecodeModel::graph describes it; `weights` gets what its inputs behind the
/// caches are: those of `given` for the whole graph's further inputs, then tables and large constants, the
/// same for all shapes. `narrow`: matrices among them, and the caches, are stored as bf16.
Graph build_token_step(const TokenGraph& whole, const DecodeShape& shape, bool narrow,
                       const std::vector<Array>& given, std::vector<Array>* weights = nullptr);

}  // namespace millrace::optim
