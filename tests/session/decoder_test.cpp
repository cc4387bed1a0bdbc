#include <chrono>
#include <cmath>
#include <doctest/doctest.h>
#include <memory>
#include <thread>

#include <millrace/decoder.h>
#include <millrace/error.h>
#include <millrace/nn.h>
#include <millrace/optim.h>
#include <millrace/random.h>

#include "optim/decode_graph.h"

using namespace millrace;

namespace {

constexpr int64_t kVocabulary = 50, kLongest = 100;

/// Weights larger than at the start, so that what a token sees makes a difference.
nn::Model decoded_model(const char* kind) {
  nn::ModelOptions options{
      .input = {kLongest}, .vocabulary = kVocabulary, .width = 48, .depth = 2, .heads = 3};
  if (std::string(kind) == "gpt_mini") options = {};
  nn::Model model = nn::make_model(kind, options);
  model.module->initialise(3);
  for (const nn::Named& named : model.module->parameters()) {
    if (named.tensor->rank() < 2) continue;
    Array array = named.tensor->to_array().clone();
    for (int64_t i = 0; i < array.count(); ++i) array.set(i, 2 * array.at(i));
    *named.tensor = Tensor(array);
  }
  return model;
}

std::shared_ptr<const DecodeModel> decode_of(const nn::Model& model, const std::string& precision = "fp32",
                                             const std::string& target = "cpu") {
  const nn::InputSpec& input = model.inputs.at(0);
  CompileOptions compile;
  compile.precision = precision;
  compile.target = target;
  return std::make_shared<const DecodeModel>(optim::decode_model(
      model.module, [](nn::Module& module, const Tensor& tokens, const Tensor&) { return module(tokens); },
      static_cast<int64_t>(input.high), input.type.shape[1].size(), compile));
}

std::vector<int32_t> tokens_of(int64_t count, uint64_t seed, int64_t vocabulary = kVocabulary) {
  std::vector<int32_t> ids;
  RandomStream random(9, seed);
  for (int64_t i = 0; i < count; ++i)
    ids.push_back(static_cast<int32_t>(random.below(static_cast<uint32_t>(vocabulary))));
  return ids;
}

/// Logits of all places, [tokens · vocabulary], by the forward pass that knows no cache.
std::vector<double> full_pass(const nn::Model& model, std::span<const int32_t> ids,
                              const std::string& precision = "fp32") {
  const auto length = static_cast<int64_t>(ids.size());
  const Graph graph = optim::build_eval_graph(
      *model.module, {{"tokens", {i64, {1, length}}}},
      [](nn::Module& module, std::span<const Tensor> in) {
        return std::vector<optim::NamedTensor>{{"logits", cast(module(in), f32)}};
      },
      false);
  CompileOptions compile;
  compile.precision = precision;
  Program program = Program::compile(graph, compile);
  for (int64_t i = 0; i < length; ++i) program.input(0).set_int(i, ids[static_cast<size_t>(i)]);
  program.run();
  return program.output(0).to_doubles();
}

/// The largest difference over the largest value.
double apart(std::span<const float> a, std::span<const double> b) {
  REQUIRE(a.size() == b.size());
  double difference = 0, largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference = std::max(difference, std::abs(a[i] - b[i]));
    largest = std::max(largest, std::abs(b[i]));
  }
  return difference / largest;
}

}  // namespace

TEST_CASE("logits of a beginning and of each step are those of the full forward pass") {
  for (const char* kind : {"gpt", "gpt_mini"}) {
    const nn::Model model = decoded_model(kind);
    const auto decode = decode_of(model);
    // Of one place, of some pages, of more than a program takes at once.
    for (const int64_t length : {1, 16, 37, 83}) {
      CAPTURE(kind);
      CAPTURE(length);
      const std::vector<int32_t> ids = tokens_of(length + 6, 1);
      const std::vector<double> all = full_pass(model, ids);
      const std::span<const double> expected = all;
      const auto width = static_cast<size_t>(decode->vocabulary);
      Decoder decoder(decode);
      const auto beginning = std::span(ids).first(static_cast<size_t>(length));
      const Array prompt = decoder.every({0, beginning});
      CHECK(apart(std::as_const(prompt).as<float>(), expected.first(beginning.size() * width)) < 1e-4);
      for (size_t place = beginning.size(); place < ids.size(); ++place) {
        const Array next = decoder.step({{0, std::span(ids).subspan(place, 1)}});
        CHECK(apart(decoder.row(next, 0), expected.subspan(place * width, width)) < 1e-4);
      }
      CHECK(decoder.length(0) == length + 6);
    }
  }
}

TEST_CASE("in bf16, and by the reference, steps agree with the full forward pass too") {
  const nn::Model model = decoded_model("gpt");
  const std::vector<int32_t> ids = tokens_of(40, 2);
  const std::vector<double> exact = full_pass(model, ids);
  const auto width = static_cast<size_t>(kVocabulary);
  for (const auto& [precision, target, most] :
       {std::tuple{"bf16", "cpu", 0.04}, {"bf16", "ref", 0.04}, {"fp32", "ref", 1e-5}}) {
    CAPTURE(precision);
    CAPTURE(target);
    Decoder decoder(decode_of(model, precision, target));
    const Array prompt = decoder.every({0, std::span(ids).first(30)});
    CHECK(apart(std::as_const(prompt).as<float>(), std::span(exact).first(30 * width)) < most);
    for (size_t place = 30; place < ids.size(); ++place) {
      const Array next = decoder.step({{0, std::span(ids).subspan(place, 1)}});
      CHECK(apart(decoder.row(next, 0), std::span(exact).subspan(place * width, width)) < most);
    }
  }
}

TEST_CASE("rows of different lengths do not see each other, nor what pages held before") {
  const nn::Model model = decoded_model("gpt");
  const auto decode = decode_of(model);
  Decoder decoder(decode, {.rows = 3});
  const auto width = static_cast<size_t>(kVocabulary);
  const auto check = [&](std::span<const float> logits, const std::vector<int32_t>& ids) {
    const std::vector<double> all = full_pass(model, ids);
    CHECK(apart(logits, std::span(all).last(width)) < 1e-4);
  };
  for (uint64_t round = 0; round < 2; ++round) {
    std::vector<std::vector<int32_t>> ids = {tokens_of(5, 10 + round), tokens_of(70, 20 + round),
                                             tokens_of(17, 30 + round)};
    const Array first = decoder.step({{2, ids[2]}, {0, ids[0]}});  // in any order, one later
    check(decoder.row(first, 0), ids[2]);
    check(decoder.row(first, 1), ids[0]);
    const Array later = decoder.step({{1, ids[1]}});
    check(decoder.row(later, 0), ids[1]);
    for (int32_t next = 0; next < 14; ++next) {
      std::vector<NewTokens> rows;
      for (size_t row = 0; row < 3; ++row) {
        ids[row].push_back(next);
        rows.push_back({static_cast<int64_t>(row), std::span(ids[row]).last(1)});
      }
      const Array logits = decoder.step(rows);
      if (next % 5 == 3)
        for (size_t row = 0; row < 3; ++row) check(decoder.row(logits, static_cast<int64_t>(row)), ids[row]);
    }
    for (int64_t row = 0; row < 3; ++row) decoder.clear(row);
  }
}

TEST_CASE("memory for keys and values is what was asked for, and running out of it is said") {
  const auto decode = decode_of(decoded_model("gpt"));
  Decoder all(decode, {.rows = 4});
  const int64_t token = 2 * 2 * 48 * 4;  // keys and values of two layers
  CHECK(all.cache_bytes() == 4 * 7 * decode_page * token);
  CHECK(all.capacity() == 4 * 7 * decode_page);
  Decoder little(decode, {.rows = 4, .memory = 3 * decode_page * token + 5});
  CHECK(little.cache_bytes() == 3 * decode_page * token);
  const std::vector<int32_t> ids = tokens_of(33, 5);
  little.step({{1, ids}});
  CHECK_THROWS_WITH_AS(little.step({{2, std::span(ids).first(1)}}),
                       doctest::Contains("0 of 3 are free: clear rows, or give the decoder more memory"),
                       InputError);
  CHECK(little.length(2) == 0);
  little.step({{1, std::span(ids).first(15)}});  // what its page has room for
  little.clear(1);
  little.step({{2, ids}});
  CHECK_THROWS_WITH_AS(Decoder(decode, {.memory = 100}),
                       doctest::Contains("for keys and values: 16 tokens need"), InputError);
}

TEST_CASE("what a decoder cannot do is said, and changes nothing") {
  const auto decode = decode_of(decoded_model("gpt"));
  Decoder decoder(decode, {.rows = 2, .longest = 20});
  const std::vector<int32_t> ids = tokens_of(20, 5), wrong = {3, 50}, negative = {-1};
  const auto refused = [&](const std::vector<NewTokens>& rows, const char* why) {
    CHECK_THROWS_WITH_AS(decoder.step(rows), doctest::Contains(why), InputError);
  };
  decoder.step({{0, ids}});
  refused({}, "no rows");
  refused({{2, ids}}, "row 2: the decoder has 2 rows");
  for (const int64_t row : {int64_t{2}, int64_t{-1}}) {
    CHECK_THROWS_WITH_AS((void)decoder.length(row), doctest::Contains("the decoder has 2 rows"), InputError);
    CHECK_THROWS_WITH_AS(decoder.clear(row), doctest::Contains("the decoder has 2 rows"), InputError);
  }
  CHECK_THROWS_AS(Decoder(decode, {.rows = int64_t{1} << 60}), InputError);
  CHECK_THROWS_AS(Decoder(decode, {.rows = 1, .memory = -1}), InputError);
  refused({{1, ids}, {1, ids}}, "row 1 is named twice");
  refused({{1, {}}}, "row 1 gets no tokens");
  refused({{1, wrong}}, "there is no token 50: the model knows 50");
  refused({{1, negative}}, "there is no token -1");
  refused({{1, ids}, {0, std::span(ids).first(1)}}, "row 0 would have 21 tokens, and 20 is the most");
  CHECK(decoder.length(0) == 20);
  CHECK(decoder.length(1) == 0);
  CHECK_THROWS_WITH_AS(Decoder(decode, {.longest = 101}), doctest::Contains("the model takes from 1 to 100"),
                       InputError);
  CHECK_THROWS_WITH_AS(Decoder(decode, {.rows = 0}), doctest::Contains("0 rows: at least 1"), InputError);
}

TEST_CASE("a model that looks at later tokens cannot be decoded") {
  nn::ModelOptions options{
      .input = {kLongest}, .vocabulary = kVocabulary, .width = 48, .depth = 1, .heads = 3};
  options.tokens = true;
  const nn::Model encoder = nn::make_model("encoder", options);
  encoder.module->initialise(1);
  CHECK_THROWS_WITH_AS(Decoder(decode_of(encoder)), doctest::Contains("looks at later tokens"), InputError);
}

TEST_CASE("a step computes with a file as long as that is as it was") {
  DecodeModel made = *decode_of(decoded_model("gpt"));
  bool written = false;
  made.require_unchanged = [&] {
    if (written) throw IoError("it was changed");
  };
  Decoder decoder(std::make_shared<const DecodeModel>(made), {});
  const std::vector<int32_t> ids = tokens_of(3, 1);
  (void)decoder.step(std::vector<NewTokens>{{0, ids}});
  written = true;
  std::this_thread::sleep_for(std::chrono::milliseconds(5));  // it looks once a millisecond
  const std::vector<int32_t> many = tokens_of(30, 2);
  for (int again = 0; again < 5; ++again) {  // nor does a row become longer, or keep pages
    CHECK_THROWS_WITH_AS((void)decoder.step(std::vector<NewTokens>{{0, many}}), "it was changed", IoError);
    CHECK(decoder.length(0) == 3);
  }
  written = false;
  CHECK_NOTHROW((void)decoder.step(std::vector<NewTokens>{{0, tokens_of(kLongest - 3, 3)}}));
}

TEST_CASE("a step writes keys and values where the cache lies, and copies none of it") {
  const nn::Model model = decoded_model("gpt");
  Decoder decoder(decode_of(model), {.rows = 8});
  // The arena has no room for one layer's.
  CHECK(decoder.program(1).arena_bytes() < decoder.cache_bytes() / 2);
}
