#include <cmath>
#include <doctest/doctest.h>

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
nn::Model drawn(const char* kind, bool tokens) {
  nn::Model model = nn::make_model(kind, small(tokens));
  model.module->initialise(3);
  for (const nn::Named& named : model.module->parameters()) {
    Array array = named.tensor->to_array().clone();
    for (int64_t i = 0; i < array.count(); ++i) array.set(i, 8 * array.at(i));
    *named.tensor = Tensor(array);
  }
  model.module->eval();
  return model;
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
  for (const char* kind : {"encoder", "bag", "bert", "lstm", "gru"}) {
    CAPTURE(kind);
    const nn::Model model = drawn(kind, false);
    const Tensor padded[] = {ids({3, 6}, {1, 2, 3, 0, 0, 0, 1, 2, 3, 9, 9, 9, 0, 0, 0, 0, 0, 0}),
                             ids({3, 6}, {1, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0})};
    const Tensor logits = (*model.module)(padded);
    check_near(row(logits, 0, 3), row((*model.module)(ids({1, 3}, {1, 2, 3})), 0, 3));
    check_near(row(logits, 3, 3), row(logits, 0, 3));
    for (const double value : row(logits, 6, 3)) CHECK(std::isfinite(value));  // an empty text
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
      const nn::Model model = architecture.make(settings, small(false));
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
