#include "optim/decode_graph.h"

#include <millrace/decoding.h>

#include "base/format.h"
#include "optim/model_scope.h"
#include "optim/token_graph.h"
#include "optim/token_lengths.h"
#include "trace/linearise.h"

namespace millrace::optim {
namespace {

/// Tables and matrices: nearly all bytes. Vectors of scales and biases stay as they are.
bool stored_narrow(const Type& type, bool parameter) {
  return parameter && type.dtype == f32 && type.shape.rank() >= 2;
}

/// [rows, tokens or 1, vocabulary] → f32 [rows, vocabulary], or of all tokens.
Tensor asked_logits(const Tensor& logits, const DecodeShape& shape) {
  if (logits.rank() != 3)
    fail<InputError>("the model gives {}, no logits at each place", logits.type().str());
  const Tensor wide = cast(logits, f32);
  const Dim vocabulary = wide.dim(2);
  if (shape.every) return wide;
  // Of a model that does not ask asked_places().
  const Tensor one = wide.dim(1) == 1 ? wide : nn::asked_places(wide);
  return reshape(one, {shape.rows, vocabulary});
}

/// Whether products of bf16 are such on this machine; where they are computed in f32, weights stored as bf16
/// would be widened in every step.
bool computes_narrow(const CompileOptions& compile) {
  if (!compile.precision.starts_with("bf16")) return false;
  Graph graph;
  graph.set_outputs({graph.add("relu", {graph.input("x", {f32, {1}})})});
  return Program::compile(graph, compile).precision() == "bf16";
}

/// Whether the model knows of a Decoding by itself.
bool keeps_caches(nn::Module& model, const DecodeFunction& function) {
  const ModelScope scope(model, false);
  const Tensor one = Tensor::symbol("one", {i64, {1, 1}});
  const nn::Decoding decoding({.positions = one,
                               .slots = one,
                               .pages = one,
                               .last = Tensor::symbol("last", {i64, {1}}),
                               .page = decode_page,
                               .capacity = decode_page});
  try {
    function(model, one, one);
  } catch (const InternalError&) {
    throw;
  } catch (const Error&) {  // one token is no text to it
    return false;
  }
  return !decoding.caches().empty();
}

/// The logits of a whole text; its inputs are the tokens, then parameters and buffers.
Graph whole_graph(nn::Module& model, const DecodeFunction& function, int64_t length) {
  ModelScope scope(model, false);
  scope.use_symbols();
  std::vector<Tensor> inputs = {Tensor::symbol("tokens", {i64, {1, length}})};
  const Tensor logits = function(model, inputs[0], reshape(iota(length), {1, length}));
  inputs.insert(inputs.end(), scope.stand_ins().begin(), scope.stand_ins().end());
  trace::Captured captured = trace::capture(inputs, std::span(&logits, 1));
  captured.graph.set_outputs({captured.value_of(logits)}, {"logits"});
  return std::move(captured.graph);
}

}  // namespace

Graph build_decode_graph(nn::Module& model, const DecodeShape& shape, const DecodeFunction& function,
                         bool narrow) {
  ModelScope scope(model, false);
  scope.use_symbols();
  const auto symbol = [](const char* name, const Shape& of) { return Tensor::symbol(name, {i64, of}); };
  std::vector<Tensor> inputs = {
      symbol("tokens", {shape.rows, shape.tokens}), symbol("positions", {shape.rows, shape.tokens}),
      symbol("slots", {shape.rows, shape.tokens}), symbol("pages", {shape.rows, shape.pages_of_row}),
      symbol("last", {shape.rows})};
  nn::Decoding decoding({.positions = inputs[1],
                         .slots = inputs[2],
                         .pages = inputs[3],
                         .last = shape.every ? Tensor() : inputs[4],
                         .page = decode_page,
                         .capacity = shape.pages * decode_page,
                         .dtype = narrow ? bf16 : f32});
  std::vector<Tensor> outputs = {asked_logits(function(model, inputs[0], inputs[1]), shape)};
  if (decoding.caches().empty())
    fail<InputError>("the model has no causal attention: there is nothing that a cache would keep");
  inputs.insert(inputs.end(), decoding.caches().begin(), decoding.caches().end());
  outputs.insert(outputs.end(), decoding.written().begin(), decoding.written().end());
  std::vector<bool> stored(inputs.size(), false);
  for (size_t i = 0; i < scope.stand_ins().size(); ++i)
    stored.push_back(narrow && stored_narrow(scope.stand_ins()[i].type(), i < scope.parameters().size()));
  inputs.insert(inputs.end(), scope.stand_ins().begin(), scope.stand_ins().end());
  trace::Captured captured = with_narrow_inputs(trace::capture(inputs, outputs), stored);
  std::vector<std::string> names = {"logits"};
  for (size_t i = 1; i < outputs.size(); ++i) names.push_back(fmt::format("new cache {}", i - 1));
  captured.graph.set_origin("");
  captured.graph.set_outputs(captured.values_of(outputs), std::move(names));
  return std::move(captured.graph);
}

DecodeModel decode_model(std::shared_ptr<nn::Module> model, DecodeFunction function, int64_t vocabulary,
                         int64_t longest, const CompileOptions& compile) {
  if (!keeps_caches(*model, function)) {
    std::vector<Array> weights;
    for (const nn::Named& named : tensors_of(*model)) {
      const Array value = value_of(named);
      weights.push_back(value.dtype() == bf16 ? value.converted(f32) : value);
    }
    std::vector<Graph> shorter;
    try {
      for (const int64_t own : compared_lengths(longest))
        shorter.push_back(whole_graph(*model, function, own));
    } catch (const InternalError&) {
      throw;
    } catch (const Error&) {  // it takes texts of one length
      shorter.clear();
    }
    return decode_model(whole_graph(*model, function, longest), shorter, weights, compile);
  }
  const bool narrow = computes_narrow(compile);
  DecodeModel made;
  made.vocabulary = vocabulary;
  made.longest = longest;
  made.compile = compile;
  const size_t parameters = model->parameters().size();
  for (const nn::Named& named : tensors_of(*model)) {
    Array value = value_of(named);
    // What a training stored as bf16 is seen as f32 where it does not stay so.
    if (value.dtype() == bf16 && made.weights.size() < parameters) value = value.converted(f32);
    const bool small = narrow && stored_narrow(value.type(), made.weights.size() < parameters);
    made.weights.push_back(small ? value.converted(bf16) : value);
  }
  made.graph = [model = std::move(model), function = std::move(function), narrow](const DecodeShape& shape) {
    return build_decode_graph(*model, shape, function, narrow);
  };
  return made;
}

DecodeModel decode_model(const Graph& whole, const std::vector<Graph>& shorter,
                         const std::vector<Array>& weights, const CompileOptions& compile) {
  const bool narrow = computes_narrow(compile);
  const auto tokens = std::make_shared<const TokenGraph>(whole);
  for (const Graph& each : shorter) require_same_steps(*tokens, TokenGraph(each, tokens.get()), weights);
  DecodeModel made;
  made.vocabulary = tokens->vocabulary();
  made.longest = tokens->longest();
  made.compile = compile;
  (void)build_token_step(*tokens, {}, narrow, weights, &made.weights);
  made.graph = [tokens, narrow, weights](const DecodeShape& shape) {
    return build_token_step(*tokens, shape, narrow, weights);
  };
  return made;
}

}  // namespace millrace::optim
