#include <cmath>
#include <doctest/doctest.h>
#include <map>
#include <string>
#include <vector>

#include <millrace/error.h>
#include <millrace/nn.h>
#include <millrace/settings.h>

#include "nn/models/architecture.h"

using namespace millrace;

namespace {

Tensor ids(const Shape& shape, std::vector<double> values) { return Tensor(Array::of(i64, shape, values)); }

std::vector<double> row(const Tensor& logits, int64_t from, int64_t count) {
  const std::vector<double> all = logits.to_array().to_doubles();
  return {all.begin() + from, all.begin() + from + count};
}

void check_near(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) CHECK(a[i] == doctest::Approx(b[i]).epsilon(1e-3));
}

nn::ModelOptions small(bool tokens) {
  nn::ModelOptions o;
  o.input = {8};
  o.vocabulary = 11;
  o.width = 16;
  o.depth = 2;
  o.heads = 2;
  o.classes = tokens ? 0 : 3;
  o.tokens = tokens;
  return o;
}

/// Larger weights than at the start, so that a leak would show.
nn::Model with_large_weights(nn::Model model) {
  model.module->initialise(3);
  for (const nn::Named& named : model.module->parameters()) {
    Array array = named.tensor->to_array().clone();
    for (int64_t i = 0; i < array.count(); ++i) array.set(i, 8 * array.at(i));
    *named.tensor = Tensor(array);
  }
  model.module->eval();
  return model;
}

nn::Model drawn(const char* kind, bool tokens) {
  return with_large_weights(nn::make_model(kind, small(tokens)));
}

nn::Model bag_of_runs(int64_t ngrams) {
  const nn::Architecture& bag = nn::architectures().at("bag");
  Settings settings(bag.settings);
  settings.set("width", int64_t{4});
  settings.set("ngrams", ngrams);
  settings.set("ngram_rows", int64_t{64});
  return with_large_weights(bag.make("bag", settings, small(false)));
}

}  // namespace

TEST_CASE("texts packed into a row give what each gives alone") {
  for (const char* kind : {"gpt", "encoder", "bert"}) {
    CAPTURE(kind);
    const nn::Model model = drawn(kind, true);
    const Tensor packed[] = {ids({1, 8}, {1, 2, 3, 4, 5, 6, 7, 0}), ids({1, 8}, {1, 1, 1, 2, 2, 2, 2, 0}),
                             ids({1, 8}, {0, 1, 2, 0, 1, 2, 3, 0})};
    const Tensor all = (*model.module)(packed);
    const Tensor first = (*model.module)(ids({1, 3}, {1, 2, 3})),
                 second = (*model.module)(ids({1, 4}, {4, 5, 6, 7}));
    check_near(row(all, 0, 33), row(first, 0, 33));
    check_near(row(all, 33, 44), row(second, 0, 44));
  }
}

TEST_CASE("padding changes nothing about a text's class") {
  for (const char* kind : {"encoder", "bag", "bag of runs", "bert", "lstm", "gru"}) {
    CAPTURE(kind);
    const nn::Model model = kind == std::string("bag of runs") ? bag_of_runs(5) : drawn(kind, false);
    const Tensor padded[] = {ids({3, 6}, {1, 2, 3, 0, 0, 0, 1, 2, 3, 9, 9, 9, 0, 0, 0, 0, 0, 0}),
                             ids({3, 6}, {1, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0})};
    const Tensor logits = (*model.module)(padded);
    check_near(row(logits, 0, 3), row((*model.module)(ids({1, 3}, {1, 2, 3})), 0, 3));
    check_near(row(logits, 3, 3), row(logits, 0, 3));
    for (const double value : row(logits, 6, 3)) CHECK(std::isfinite(value));  // an empty text
  }
}

TEST_CASE("a bag of runs is the mean of its tokens' vectors and of those in its runs' rows") {
  const nn::Model model = bag_of_runs(3);
  std::map<std::string, Array> weights;
  for (const nn::Named& named : model.module->parameters()) weights[named.name] = named.tensor->to_array();
  const Tensor logits = (*model.module)(ids({1, 3}, {4, 2, 7}));
  std::vector<double> mean(4);
  for (int64_t i = 0; i < 4; ++i) {
    for (const int64_t token : {4, 2, 7})
      mean[static_cast<size_t>(i)] += weights["tok"].at(4 * token + i) / 6;
    // The rows of (4, 2), (2, 7) and (4, 2, 7), as saved weights have them.
    for (const int64_t run : {38, 16, 6})
      mean[static_cast<size_t>(i)] += weights["ngrams"].at(4 * run + i) / 6;
  }
  for (int64_t c = 0; c < 3; ++c) {
    double expected = weights["head.bias"].at(c);
    for (int64_t i = 0; i < 4; ++i)
      expected += mean[static_cast<size_t>(i)] * weights["head.weight"].at(4 * c + i);
    CHECK(logits.to_array().at(c) == doctest::Approx(expected).epsilon(1e-4));
  }
  // A text shorter than its longest run; runs do not reach from one text of a row into the next.
  CHECK(std::isfinite((*model.module)(ids({1, 1}, {4})).to_array().at(0)));
  const Tensor two[] = {ids({1, 4}, {4, 2, 4, 2}), ids({1, 4}, {1, 1, 2, 2})};
  check_near(row((*model.module)(two), 0, 3), row((*model.module)(ids({1, 2}, {4, 2})), 0, 3));
  // Without runs order says nothing.
  for (const int64_t ngrams : {1, 2}) {
    const nn::Model other = bag_of_runs(ngrams);
    const double gap = (*other.module)(ids({1, 3}, {4, 2, 7})).to_array().at(0) -
                       (*other.module)(ids({1, 3}, {7, 2, 4})).to_array().at(0);
    CHECK((std::abs(gap) < 1e-5) == (ngrams == 1));
  }
}

TEST_CASE("gpt does not look ahead, encoder does") {
  for (const char* kind : {"gpt", "encoder"}) {
    const nn::Model model = drawn(kind, true);
    const Tensor a = (*model.module)(ids({1, 4}, {1, 2, 3, 4})),
                 b = (*model.module)(ids({1, 4}, {1, 2, 3, 9}));
    const double gap = std::abs(a.to_array().at(0) - b.to_array().at(0));
    CHECK((gap < 1e-6) == (std::string(kind) == "gpt"));
  }
  CHECK_THROWS_WITH_AS(nn::make_model("bag", small(true)), doctest::Contains("cannot predict tokens"),
                       InputError);
  nn::ModelOptions odd = small(false);
  odd.heads = 3;
  CHECK_THROWS_WITH_AS(nn::make_model("encoder", odd), doctest::Contains("cannot be divided among"),
                       InputError);
}

TEST_CASE("recurrent models read texts in both directions, whatever is padded behind them") {
  for (const char* kind : {"lstm", "gru"})
    for (const char* pooling : {"last", "mean"}) {
      CAPTURE(kind);
      CAPTURE(pooling);
      const nn::Architecture& architecture = nn::architectures().at(kind);
      Settings settings(architecture.settings);
      settings.set("width", int64_t{6});
      settings.set("depth", int64_t{2});
      settings.set("embedding", int64_t{4});
      settings.set("bidirectional", true);
      settings.set("pooling", std::string(pooling));
      const nn::Model model = architecture.make(kind, settings, small(false));
      model.module->initialise(5);
      model.module->eval();
      const Tensor alone = (*model.module)(ids({1, 3}, {4, 2, 7}));
      for (const int64_t length : {3, 4, 8}) {
        std::vector<double> tokens = {4, 2, 7}, segments = {1, 1, 1};
        tokens.resize(static_cast<size_t>(length), 9);
        segments.resize(static_cast<size_t>(length), 0);
        const Tensor padded[] = {ids({1, length}, tokens), ids({1, length}, segments)};
        check_near(row((*model.module)(padded), 0, 3), row(alone, 0, 3));
      }
      const Tensor turned = (*model.module)(ids({1, 3}, {7, 2, 4}));
      CHECK(std::abs(turned.to_array().at(0) - alone.to_array().at(0)) > 1e-4);
    }
}
