#include "optim/token_graph.h"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <functional>

#include <millrace/decoder.h>
#include <millrace/error.h>
#include <millrace/nn.h>
#include <millrace/optim.h>

#include "backend/ref/evaluate.h"
#include "ops/build.h"
#include "optim/decode_graph.h"
#include "optim/token_lengths.h"
#include "support/graphs.h"
#include "support/refusal.h"

using namespace millrace;

namespace {

constexpr int64_t kVocabulary = 41, kWidth = 24, kHeads = 3, kHead = 8, kLongest = 40;
using Ints = std::vector<int64_t>;

/// What a test does otherwise than the usual model.
struct Changes {
  std::function<Value(ops::Build&, Value scores)> mask = {};    // [1, heads, length, length]
  std::function<Value(ops::Build&, Value x)> between = {};      // [1, length, width], before attention
  std::function<Value(ops::Build&, Value logits)> behind = {};  // [1, length, vocabulary]
  bool attention_first = false;                                 // it stands in front of what it is added to
  int64_t value_width = kHead;                                  // of a head
};

Value causal(ops::Build& b, Value scores) {
  const int64_t length = b.shape(scores)[2].size();
  Array later(boolean, {1, 1, length, length});
  for (int64_t i = 0; i < later.count(); ++i) later.set(i, i % length > i / length);
  const Value where = b.broadcast(b.graph().constant(later), b.shape(scores));
  return b.select(where, b.fill(scores, -INFINITY), scores);
}

Value weight(ops::Build& b, const Shape& shape, uint64_t stream) {
  return b.graph().constant(test::values_for({f32, shape}, stream));
}

/// x · (a matrix), for each token.
Value linear(ops::Build& b, Value x, int64_t to, uint64_t stream) {
  const Shape shape = b.shape(x);
  const Value rows = b.matmul(b.reshape(x, {shape[1], shape[2]}), weight(b, {shape[2].size(), to}, stream));
  return b.reshape(rows, {1, shape[1], to});
}

/// Each head turned by its place: x · cos + (−second half, first half) · sin.
Value rotated(ops::Build& b, Value x) {
  const Shape shape = b.shape(x);
  Array angles(f32, {shape[2], kHead});
  for (int64_t i = 0; i < angles.count(); ++i)
    angles.set(i, static_cast<double>(i / kHead) * std::pow(0.3, static_cast<double>(i % (kHead / 2))));
  const Value all = b.graph().constant(angles);
  const auto half = [&](int64_t from) {
    return b.graph().add("slice", {x},
                         {{"starts", Ints{0, 0, 0, from}},
                          {"ends", Ints{1, shape[1].size(), shape[2].size(), from + kHead / 2}}});
  };
  const Value turned = b.graph().add("concat", {b.neg(half(kHead / 2)), half(0)}, {{"axis", int64_t{3}}});
  return b.add(b.mul(x, b.broadcast(b.unary("cos", all), shape)),
               b.mul(turned, b.broadcast(b.unary("sin", all), shape)));
}

/// A small model of the next token as exporters write such: rotations, heads that share keys and values.
Graph written(int64_t length, const Changes& changes = {}) {
  Graph graph;
  ops::Build b(graph);
  const Value tokens = graph.input("tokens", {i64, {1, length}});
  const Value table = weight(b, {kVocabulary, kWidth}, 1);
  Value x = graph.add("gather", {table, tokens}, {{"axis", int64_t{0}}});
  // Places as embeddings, cut from a longer table.
  const Value places = graph.add("slice", {weight(b, {kLongest, kWidth}, 2)},
                                 {{"starts", Ints{0, 0}}, {"ends", Ints{length, kWidth}}});
  x = b.add(x, b.broadcast(places, b.shape(x)));
  for (uint64_t layer = 0; layer < 2; ++layer) {
    const uint64_t stream = 10 * (layer + 1);
    Value in = graph.add("layer_norm", {x, weight(b, {kWidth}, stream), weight(b, {kWidth}, stream + 1)},
                         {{"axis", int64_t{2}}});
    if (changes.between) in = changes.between(b, in);
    const auto heads = [&](int64_t count, uint64_t own, int64_t width = kHead) {
      const Value all = b.reshape(linear(b, in, count * width, own), {1, length, count, width});
      return b.transpose(all, {0, 2, 1, 3});
    };
    const int64_t width = changes.value_width;
    const Shape shape{1, kHeads, length, kHead};
    const Value q = rotated(b, heads(kHeads, stream + 2));
    const Value k = b.broadcast(rotated(b, heads(1, stream + 3)), shape);
    const Value v = b.broadcast(heads(1, stream + 4, width), {1, kHeads, length, width});
    Value scores = b.mul(b.matmul(q, b.transpose(k, {0, 1, 3, 2})), 0.4);
    scores = changes.mask ? changes.mask(b, scores) : causal(b, scores);
    const Value mixed = b.transpose(b.matmul(b.softmax(scores, -1), v), {0, 2, 1, 3});
    const Value attended = linear(b, b.reshape(mixed, {1, length, kHeads * width}), kWidth, stream + 5);
    x = changes.attention_first ? b.add(attended, x) : b.add(x, attended);
    x = b.add(x, b.unary("tanh", linear(b, x, kWidth, stream + 6)));
  }
  Value logits =
      b.reshape(b.matmul(b.reshape(x, {length, kWidth}), table, false, true), {1, length, kVocabulary});
  if (changes.behind) logits = changes.behind(b, logits);
  graph.set_outputs({logits}, {"logits"});
  return graph;
}

std::vector<int32_t> ids_of(int64_t count, int64_t vocabulary = kVocabulary) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < count; ++i)
    ids.push_back(static_cast<int32_t>((7 * i * i + 3 * i + 5) % vocabulary));
  return ids;
}

std::vector<double> full_pass(std::span<const int32_t> ids, const Changes& changes = {}) {
  Array tokens(i64, {1, static_cast<int64_t>(ids.size())});
  for (size_t i = 0; i < ids.size(); ++i) tokens.set_int(static_cast<int64_t>(i), ids[i]);
  return ref::evaluate(written(static_cast<int64_t>(ids.size()), changes), std::span(&tokens, 1))[0]
      .to_doubles();
}

double apart(std::span<const float> a, std::span<const double> b) {
  REQUIRE(a.size() == b.size());
  double difference = 0, largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference = std::max(difference, std::abs(a[i] - b[i]));
    largest = std::max(largest, std::abs(b[i]));
  }
  return difference / largest;
}

std::shared_ptr<const DecodeModel> decode_of(const Graph& whole, const std::string& precision = "fp32") {
  CompileOptions compile;
  compile.precision = precision;
  return std::make_shared<const DecodeModel>(optim::decode_model(whole, {}, {}, compile));
}

/// A number that is added to scores, by query and key, for each head.
Changes with_added(std::function<double(int64_t head, int64_t query, int64_t key)> added) {
  return {.mask = [added = std::move(added)](ops::Build& b, Value scores) {
    const int64_t length = b.shape(scores)[2].size();
    Array array(f32, {kHeads, length, length});
    for (int64_t i = 0; i < array.count(); ++i)
      array.set(i, added(i / length / length, i / length % length, i % length));
    return b.add(scores, b.broadcast(b.graph().constant(array), b.shape(scores)));
  }};
}

/// Only the last place of [1, length, …]. `axis`: it is gone.
Value last_place(ops::Build& b, Value x, bool gone) {
  const Shape shape = b.shape(x);
  const int64_t last = shape[1].size() - 1;
  if (gone) {
    const Value place = b.graph().constant(Array::scalar(i64, static_cast<double>(last)));
    return b.graph().add("gather", {x, place}, {{"axis", int64_t{1}}});
  }
  return b.graph().add("slice", {x},
                       {{"starts", Ints{0, last, 0}}, {"ends", Ints{1, last + 1, shape[2].size()}}});
}

/// A decoder's steps, one token or several at a time, give what whole texts do at their last places.
void check_steps(const Changes& changes, const Changes& whole) {
  constexpr double most = 3e-5;
  Decoder decoder(decode_of(written(kLongest, changes)), {.rows = 2});
  const std::vector<int32_t> ids = ids_of(kLongest);
  const std::vector<double> all = full_pass(ids, whole);
  const std::span<const double> expected = all;
  const std::span<const int32_t> text = ids;
  const auto row_of = [&](size_t place) { return expected.subspan(place * kVocabulary, kVocabulary); };
  Array logits = decoder.step({{0, text.first(19)}, {1, text.first(1)}});
  CHECK(apart(decoder.row(logits, 0), row_of(18)) < most);
  CHECK(apart(decoder.row(logits, 1), row_of(0)) < most);
  for (size_t i = 1; i < 21; ++i) {
    logits = decoder.step({{0, text.subspan(18 + i, 1)}, {1, text.subspan(i, 1)}});
    CAPTURE(i);
    CHECK(apart(decoder.row(logits, 0), row_of(18 + i)) < most);
    CHECK(apart(decoder.row(logits, 1), row_of(i)) < most);
  }
}

std::string refusal(const Changes& changes) {
  return testing::refusal([&] { optim::TokenGraph(written(12, changes)); });
}

}  // namespace

TEST_CASE("a graph of whole texts goes on with rows of any lengths as it does with whole ones") {
  for (const char* precision : {"fp32", "bf16"}) {
    CAPTURE(precision);
    const double most = std::string(precision) == "fp32" ? 1e-5 : 4e-2;
    const auto decode = decode_of(written(kLongest), precision);
    CHECK(decode->vocabulary == kVocabulary);
    CHECK(decode->longest == kLongest);
    Decoder decoder(decode, {.rows = 3});
    const std::vector<int32_t> ids = ids_of(kLongest);
    const std::vector<double> all = full_pass(ids);
    const std::span<const double> expected = all;
    const auto row_of = [&](size_t place) { return expected.subspan(place * kVocabulary, kVocabulary); };
    // Rows begin with 17, 3 and 1 tokens at once, and the second one waits for two steps.
    const std::span<const int32_t> text = ids;
    Array logits = decoder.step({{0, text.first(17)}, {1, text.first(3)}, {2, text.first(1)}});
    CHECK(apart(decoder.row(logits, 0), row_of(16)) < most);
    CHECK(apart(decoder.row(logits, 1), row_of(2)) < most);
    CHECK(apart(decoder.row(logits, 2), row_of(0)) < most);
    for (size_t i = 0; i < 2; ++i) {
      logits = decoder.step({{0, text.subspan(17 + i, 1)}, {2, text.subspan(1 + i, 1)}});
      CHECK(apart(decoder.row(logits, 0), row_of(17 + i)) < most);
      CHECK(apart(decoder.row(logits, 1), row_of(1 + i)) < most);
    }
    logits = decoder.step({{1, text.subspan(3, 1)}, {0, text.subspan(19, 21)}});
    CHECK(apart(decoder.row(logits, 0), row_of(3)) < most);
    CHECK(apart(decoder.row(logits, 1), row_of(39)) < most);
    decoder.clear(1);
    const Array every = decoder.every({1, text.first(37)});
    CHECK(apart(std::as_const(every).as<float>(), expected.first(37 * kVocabulary)) < most);
  }
}

TEST_CASE("each layer has keys and values of its own, in whatever order they are reached") {
  const Changes changes{.attention_first = true};
  check_steps(changes, changes);
}

TEST_CASE("values of another width than keys are kept beside them") {
  for (const int64_t width : {kHead - 3, kHead + 5})
    check_steps({.value_width = width}, {.value_width = width});
}

TEST_CASE("windows, and numbers that are added by distance, go along with each token") {
  const auto hides_later = [](int64_t query, int64_t key) { return key > query; };
  const auto alibi = [&](int64_t head, int64_t query, int64_t key) {
    return hides_later(query, key) ? -1e9
                                   : static_cast<double>(key - query) * 0.3 / static_cast<double>(head + 1);
  };
  const auto window = [&](int64_t, int64_t query, int64_t key) {
    return hides_later(query, key) || query - key >= 7 ? -1e9 : 0.0;
  };
  const auto both = [&](int64_t head, int64_t query, int64_t key) {
    return alibi(head, query, key) + window(head, query, key);
  };
  for (const Changes& changes : {with_added(alibi), with_added(window), with_added(both)})
    check_steps(changes, changes);
  // As some write it: by key alone, which for a query is the same but for a number.
  check_steps(with_added([&](int64_t head, int64_t query, int64_t key) {
                return hides_later(query, key)
                           ? -1e9
                           : static_cast<double>(key) * 0.3 / static_cast<double>(head + 1);
              }),
              with_added(alibi));
  const auto biases = [](const Changes& changes) {
    return optim::TokenGraph(written(kLongest, changes)).biases();
  };
  CHECK(biases({})[0].empty());
  CHECK(biases(with_added(window))[1].shape() == Shape{1, 7});
  CHECK(biases(with_added(alibi))[0].shape() == Shape{kHeads, kLongest});
}

TEST_CASE("a model of the last place's logits alone goes on") {
  for (const bool gone : {false, true}) {
    CAPTURE(gone);
    check_steps({.behind = [gone](ops::Build& b, Value logits) { return last_place(b, logits, gone); }}, {});
    // What comes behind it.
    const auto bent = [](ops::Build& b, Value x) {
      Array numbers(f32, {kVocabulary});
      for (int64_t i = 0; i < kVocabulary; ++i) numbers.set(i, 0.1 * static_cast<double>(i % 5));
      return b.add(b.unary("tanh", x), b.broadcast(b.graph().constant(numbers), b.shape(x)));
    };
    check_steps({.behind = [&](ops::Build& b, Value logits) { return bent(b, last_place(b, logits, gone)); }},
                {.behind = bent});
  }
  // A last layer that asks for the last token alone.
  Graph alone;
  ops::Build b(alone);
  const Value tokens = alone.input("tokens", {i64, {1, 12}});
  const Value x =
      alone.add("gather", {weight(b, {kVocabulary, kVocabulary}, 1), tokens}, {{"axis", int64_t{0}}});
  const Value all = b.reshape(x, {1, 1, 12, kVocabulary});
  const Value q =
      alone.add("slice", {all}, {{"starts", Ints{0, 0, 11, 0}}, {"ends", Ints{1, 1, 12, kVocabulary}}});
  alone.set_outputs(
      {b.reshape(alone.add("attention", {q, all, all}, {{"causal", true}}), {1, 1, kVocabulary})});
  CHECK(testing::refusal([&] {
          optim::TokenGraph whole(alone);
        }).find("takes the last token alone, before") != std::string::npos);
}

TEST_CASE("models of the library go on from their graphs of whole texts as from their own steps") {
  nn::ModelOptions options{.input = {kLongest}, .vocabulary = 50, .width = 48, .depth = 2, .heads = 3};
  const nn::Model model = nn::make_model("gpt", options);
  model.module->initialise(3);
  const Graph whole = optim::build_eval_graph(
      *model.module, {{"tokens", {i64, {1, kLongest}}}},
      [](nn::Module& module, std::span<const Tensor> in) {
        return std::vector<optim::NamedTensor>{{"logits", module(in)}};
      },
      false);
  const auto own = std::make_shared<const DecodeModel>(optim::decode_model(
      model.module, [](nn::Module& module, const Tensor& tokens, const Tensor&) { return module(tokens); },
      50, kLongest, {}));
  const std::vector<int32_t> ids = ids_of(30, 50);
  Decoder expected(own);
  const std::vector<double> logits = expected.every({0, ids}).to_doubles();
  Decoder decoder(decode_of(whole));
  const Array every = decoder.every({0, std::span(ids).first(29)});
  CHECK(apart(std::as_const(every).as<float>(), std::span(logits).first(29 * 50)) < 1e-5);
  const Array last = decoder.step({{0, std::span(ids).last(1)}});
  CHECK(apart(decoder.row(last, 0), std::span(logits).last(50)) < 1e-5);
}

TEST_CASE("all steps have the same weights, of which matrices are stored narrow") {
  const optim::TokenGraph whole(written(12));
  for (const bool narrow : {false, true}) {
    std::vector<Array> weights;
    (void)optim::build_token_step(whole, {}, narrow, {}, &weights);
    for (const DecodeShape& shape : {DecodeShape{2, 1, 3, 6, false}, DecodeShape{2, 16, 3, 6, true}}) {
      const Graph step = optim::build_token_step(whole, shape, narrow, {});
      REQUIRE(step.inputs().size() == 5 + 2 + weights.size());
      for (size_t i = 0; i < weights.size(); ++i) CHECK(step.type(step.inputs()[7 + i]) == weights[i].type());
      CHECK(step.type(step.inputs()[5]).dtype == (narrow ? bf16 : f32));
    }
    int matrices = 0, places = 0;
    for (const Array& array : weights) {
      matrices += array.dtype() == bf16;
      const std::vector<int64_t> sizes = array.shape().sizes();
      places += array.dtype() == f32 && std::find(sizes.begin(), sizes.end(), 12) != sizes.end();
    }
    CHECK(matrices == (narrow ? 7 : 0));  // those of 1 KB and more
    CHECK(places >= 3);                   // embeddings, cosines and sines of places
  }
}

TEST_CASE("what looks at other tokens but by attention that looks back is refused by name") {
  CHECK(refusal({}) == "");
  const std::string several = "takes several tokens at once";
  const auto says = [](const std::string& message, const std::string& part) {
    CHECK_MESSAGE(message.find(part) != std::string::npos, message);
  };
  says(refusal({.between = [](ops::Build& b,
                              Value x) { return b.sub(x, b.broadcast(b.mean(x, {1}, true), b.shape(x))); }}),
       several);
  // Shifted by one: as large as before.
  says(refusal({.between =
                    [](ops::Build& b, Value x) {
                      const auto part = [&](int64_t from, int64_t to) {
                        return b.graph().add("slice", {x},
                                             {{"starts", Ints{0, from, 0}}, {"ends", Ints{1, to, kWidth}}});
                      };
                      return b.graph().add("concat", {part(11, 12), part(0, 11)}, {{"axis", int64_t{1}}});
                    }}),
       several);
  says(refusal({.mask = [](ops::Build&, Value scores) { return scores; }}), "looks at later tokens, too");
  const std::string mask = "has a mask that shows later tokens, or depends on more than how far back";
  const auto masked = [](const std::function<double(int64_t query, int64_t key)>& added) {
    return with_added([added](int64_t, int64_t query, int64_t key) { return added(query, key); });
  };
  CHECK(refusal(masked([](int64_t query, int64_t key) { return key > query ? -1e9 : 0; })) == "");
  says(refusal(masked([](int64_t query, int64_t key) { return key > query + 1 ? -1e9 : 0; })), mask);
  says(refusal(masked([](int64_t query, int64_t key) { return key > query ? -5 : 0; })), mask);
  // All but the first token are seen by all; and a number for one pair.
  says(refusal(masked(
           [](int64_t query, int64_t key) { return key > query || (key == 0 && query > 3) ? -1e9 : 0; })),
       mask);
  says(refusal(masked([](int64_t query, int64_t key) {
         return key > query ? -1e9 : query == 5 && key == 2 ? 0.01 : 0;
       })),
       mask);
  says(refusal(with_added([](int64_t head, int64_t query, int64_t key) {
         return key > query || (head == 2 && query == 4 && key == 4) ? -1e9 : 0;
       })),
       mask);
  says(refusal({.mask = [](ops::Build& b, Value scores) { return b.unary("tanh", scores); }}),
       "mixes tokens, and is no part of attention in a form that is known");
  // Of the last place but one.
  says(refusal({.behind =
                    [](ops::Build& b, Value logits) {
                      return b.graph().add("slice", {logits},
                                           {{"starts", Ints{0, 10, 0}}, {"ends", Ints{1, 11, kVocabulary}}});
                    }}),
       several);
  says(refusal({.behind =
                    [](ops::Build& b, Value logits) {
                      return b.transpose(logits, {0, 2, 1});
                    }}),
       "no logits at each of 12 places");
  Graph none;
  ops::Build b(none);
  const Value x =
      none.add("gather", {weight(b, {kVocabulary, kVocabulary}, 1), none.input("tokens", {i64, {1, 12}})},
               {{"axis", int64_t{0}}});
  none.set_outputs({x});
  says(testing::refusal([&] { optim::TokenGraph whole(none); }), "no causal attention");
}

TEST_CASE("what depends on how long the whole text is cannot be done token by token") {
  const auto compared = [](const Changes& changes) {
    return testing::refusal([&] {
      const optim::TokenGraph longer(written(kLongest, changes)), shorter(written(18, changes), &longer);
      optim::require_same_steps(longer, shorter, {});
    });
  };
  CHECK(compared({}) == "");
  const auto says = [](const std::string& message) {
    CHECK_MESSAGE(message.starts_with("what it does to a token depends on how long the whole text is"),
                  message);
  };
  // A factor of the length, and places that are counted from the end.
  says(compared({.between = [](ops::Build& b, Value x) {
    return b.mul(x, 1 / std::log(static_cast<double>(b.shape(x)[1].size())));
  }}));
  says(compared({.between = [](ops::Build& b, Value x) {
    Array places(f32, b.shape(x));
    for (int64_t i = 0; i < places.count(); ++i)
      places.set(i, static_cast<double>(b.shape(x)[1].size() - i / kWidth));
    return b.add(x, b.graph().constant(places));
  }}));
  says(compared({.between = [](ops::Build& b, Value x) {
    return b.shape(x)[1].size() > 20 ? b.unary("tanh", x) : b.unary("sin", x);
  }}));
  // Windows that the shorter text does not fill, and in one layer alone.
  const auto window = [](int64_t most) {
    return with_added([most](int64_t, int64_t query, int64_t key) {
      return key > query || query - key >= most ? -1e9 : 0;
    });
  };
  for (const int64_t most : {7, 18, 25, 100}) CHECK(compared(window(most)) == "");
  const auto layers = std::make_shared<int>(0);
  CHECK(compared({.mask = [&, layers](ops::Build& b, Value scores) {
          return (*layers)++ % 2 == 0 ? window(25).mask(b, scores) : causal(b, scores);
        }}) == "");
  const auto slope = [](int64_t most) {
    return Changes{.mask = [most](ops::Build& b, Value scores) {
      const double each = b.shape(scores)[2].size() > most ? 0 : 0.2;
      return with_added([each](int64_t, int64_t query, int64_t key) {
               return key > query ? -1e9 : each * static_cast<double>(key);
             })
          .mask(b, scores);
    }};
  };
  CHECK(compared(slope(100)) == "");
  CHECK(
      compared(slope(20)).starts_with("what attention adds to scores depends on how long the whole text is"));
}
