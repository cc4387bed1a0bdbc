#include <cmath>
#include <doctest/doctest.h>

#include <millrace/error.h>
#include <millrace/nn.h>

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
  for (const char* kind : {"encoder", "bag", "bert"}) {
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
