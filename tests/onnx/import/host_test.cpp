// What stands at a model's edge: texts, sequences, optionals, sizes that depend on data, inputs that must be
// known.
#include <cmath>
#include <doctest/doctest.h>
#include <string>

#include <millrace/error.h>

#include "base/wire.h"
#include "onnx/import/call.h"
#include "onnx/writer.h"
#include "support/onnx_run.h"

using namespace millrace;
using test::HostValue;

namespace {

WireWriter node_message(const std::string& op, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs,
                        const std::vector<WireWriter>& attributes = {}) {
  WireWriter node;
  for (const std::string& name : inputs) node.bytes(1, name);
  for (const std::string& name : outputs) node.bytes(2, name);
  node.bytes(4, op);
  for (const WireWriter& each : attributes) node.message(5, each);
  return node;
}

WireWriter integer_attribute(const std::string& name, int64_t value) {
  return WireWriter().bytes(1, name).integer(3, value).varint(20, 2);
}

/// A tensor input; one of texts where `data_type` is 8.
WireWriter tensor_info(const std::string& name, uint64_t data_type, const std::vector<int64_t>& sizes) {
  WireWriter shape;
  for (const int64_t size : sizes) shape.message(1, WireWriter().integer(1, size));
  const WireWriter tensor = WireWriter().varint(1, data_type).message(2, shape);
  return WireWriter().bytes(1, name).message(2, WireWriter().message(1, tensor));
}

struct Parts {
  std::vector<WireWriter> nodes, inputs;
  std::vector<std::string> outputs;
  std::vector<WireWriter> initialisers = {}, sparse = {};
};

std::string bytes_of(const Parts& parts) {
  WireWriter graph;
  for (const WireWriter& each : parts.nodes) graph.message(1, each);
  for (const WireWriter& each : parts.initialisers) graph.message(5, each);
  for (const WireWriter& each : parts.inputs) graph.message(11, each);
  for (const std::string& each : parts.outputs) graph.message(12, WireWriter().bytes(1, each));
  for (const WireWriter& each : parts.sparse) graph.message(15, each);
  return WireWriter()
      .varint(1, 10)
      .message(7, graph)
      .message(8, WireWriter().bytes(1, "").varint(2, 21))
      .text();
}

HostValue floats(const std::vector<double>& values) {
  return HostValue::of(Array::of(f32, {static_cast<int64_t>(values.size())}, values));
}

}  // namespace

TEST_CASE("an input that sizes depend on is told when it is given, and named when it is not") {
  const std::string bytes = bytes_of({{node_message("Reshape", {"x", "shape"}, {"y"})},
                                      {tensor_info("x", 1, {6}), tensor_info("shape", 7, {2})},
                                      {"y"}});
  const onnx::Model model = onnx::parse_model(bytes, "m.onnx");
  const test::Ran ran =
      test::run_model(model, {{"x", floats({1, 2, 3, 4, 5, 6})},
                              {"shape", HostValue::of(Array::of(i64, {2}, std::vector<double>{3, -1}))}});
  CHECK(ran.known == std::vector<std::string>{"shape"});
  CHECK(ran.outputs[0].array.shape() == Shape{3, 2});
  CHECK_THROWS_WITH_AS(onnx::import_model(model, {}), doctest::Contains("it comes from 'shape'"),
                       onnx::UnknownInputs);
}

TEST_CASE("a size that depends on data is bounded, and the true one stands beside it") {
  const onnx::Model model = onnx::parse_model(
      bytes_of({{node_message("NonZero", {"x"}, {"y"})}, {tensor_info("x", 1, {4})}, {"y"}}), "m.onnx");
  const onnx::Imported imported = onnx::import_model(model, {});
  CHECK(imported.graph.output_names() == std::vector<std::string>{"y", "y.size"});
  CHECK(imported.graph.type(imported.graph.outputs()[0]).shape == Shape{1, 4});
  const test::Ran ran = test::run_model(model, {{"x", floats({0, 5, 0, 7})}});
  CHECK(ran.known.empty());
  CHECK(ran.outputs[0].array.identical(Array::of(i64, {1, 2}, std::vector<double>{1, 3})));
  // It goes on through other nodes.
  const std::string more =
      bytes_of({{node_message("NonZero", {"x"}, {"y"}), node_message("Neg", {"y"}, {"z"})},
                {tensor_info("x", 1, {4})},
                {"z"}});
  CHECK(onnx::import_model(onnx::parse_model(more, "m.onnx"), {}).graph.output_names() ==
        std::vector<std::string>{"z", "z.size"});
  CHECK(test::run_model(onnx::parse_model(more, "m.onnx"), {{"x", floats({0, 5, 0, 7})}})
            .outputs[0]
            .array.identical(Array::of(i64, {1, 2}, std::vector<double>{-1, -3})));
  // Where it cannot, the node says so, and knowing the input helps.
  const std::string pairs =
      bytes_of({{node_message("NonZero", {"x"}, {"y"}), node_message("Transpose", {"y"}, {"t"}),
                 node_message("Mul", {"t", "y"}, {"z"})},
                {tensor_info("x", 1, {4})},
                {"z"}});
  CHECK_THROWS_WITH_AS(onnx::import_model(onnx::parse_model(pairs, "m.onnx"), {}),
                       doctest::Contains("(Mul): two of its result's sizes depend on data"),
                       onnx::UnknownInputs);
  const test::Ran told = test::run_model(onnx::parse_model(pairs, "m.onnx"), {{"x", floats({0, 5, 0, 7})}});
  CHECK(told.known == std::vector<std::string>{"x"});
  CHECK(told.outputs[0].array.identical(Array::of(i64, {2, 2}, std::vector<double>{1, 3, 3, 9})));
}

TEST_CASE("texts are computed with while a model is read, and refused where numbers are meant") {
  const onnx::Texts a{{2}, {"x", "\xC3\xA4"}}, b{{1}, {"!"}};
  const std::vector<WireWriter> inputs{tensor_info("a", 8, {2}), tensor_info("b", 8, {1})};
  const std::string bytes = bytes_of({{node_message("StringConcat", {"a", "b"}, {"y"})}, inputs, {"y"}});
  const test::Ran ran =
      test::run_model(onnx::parse_model(bytes, "m.onnx"), {{"a", HostValue::of(a)}, {"b", HostValue::of(b)}});
  CHECK(ran.outputs[0].texts.values == std::vector<std::string>{"x!", "\xC3\xA4!"});
  // At blanks, as many as there are, and once only: the rest is without those at its end.
  const std::string split =
      bytes_of({{node_message("StringSplit", {"a"}, {"y", "n"}, {integer_attribute("maxsplit", 1)})},
                {tensor_info("a", 8, {2})},
                {"y", "n"}});
  const onnx::Texts sentences{{2}, {"  a b  c  ", "d"}};
  const test::Ran words =
      test::run_model(onnx::parse_model(split, "m.onnx"), {{"a", HostValue::of(sentences)}});
  CHECK(words.outputs[0].texts.values == std::vector<std::string>{"a", "b  c", "d", ""});
  CHECK(words.outputs[1].array.to_doubles() == std::vector<double>{2, 1});
  const std::string wrong = bytes_of({{node_message("Neg", {"a"}, {"y"})}, inputs, {"y"}});
  CHECK_THROWS_WITH_AS(
      test::run_model(onnx::parse_model(wrong, "m.onnx"), {{"a", HostValue::of(a)}, {"b", HostValue::of(b)}}),
      doctest::Contains("its input 'a' holds texts"), InputError);
}

TEST_CASE("different values are given with where each stands first, which each is and how often") {
  const auto unique = [](const Array& x, const std::vector<WireWriter>& attributes) {
    const std::vector<std::string> outputs = {"y", "first", "which", "count"};
    const std::string bytes = bytes_of(
        {{node_message("Unique", {"x"}, outputs, attributes)}, {}, outputs, {onnx::tensor_message("x", x)}});
    std::vector<std::vector<double>> all;
    for (const HostValue& output : test::run_model(onnx::parse_model(bytes, "m.onnx"), {}).outputs)
      all.push_back(output.array.to_doubles());
    return all;
  };
  using Lists = std::vector<std::vector<double>>;
  const Array five = floats({7, 3, 7, -1, 3}).array;
  CHECK(unique(five, {}) == Lists{{-1, 3, 7}, {3, 1, 0}, {2, 1, 2, 0, 1}, {1, 2, 2}});
  CHECK(unique(five, {integer_attribute("sorted", 0)}) ==
        Lists{{7, 3, -1}, {0, 1, 3}, {0, 1, 0, 2, 1}, {2, 2, 1}});
  // NaNs are one value, behind all others, as NumPy has them.
  const Lists odd = unique(floats({NAN, 3, NAN, -1}).array, {});
  CHECK(std::isnan(odd[0][2]));
  CHECK(Lists(odd.begin() + 1, odd.end()) == Lists{{3, 1, 0}, {2, 1, 2, 0}, {1, 1, 2}});
  // Whole columns.
  const Array table = Array::of(f32, {2, 4}, std::vector<double>{5, 1, 5, 1, 6, 2, 6, 3});
  CHECK(unique(table, {integer_attribute("axis", 1)}) ==
        Lists{{1, 1, 5, 2, 3, 6}, {1, 3, 0}, {2, 0, 2, 1}, {1, 1, 2}});
}

TEST_CASE("a label encoder gives what stands beside a key, NaN included, and its default elsewhere") {
  const auto encoder = [](const WireWriter& keys, const WireWriter& values) {
    return node_message("LabelEncoder", {"x"}, {"y"}, {keys, values}).bytes(7, "ai.onnx.ml");
  };
  const WireWriter texts =
      WireWriter().bytes(1, "keys_strings").bytes(9, "red").bytes(9, "blue").varint(20, 8);
  const WireWriter numbers = WireWriter().bytes(1, "values_int64s").integer(8, 5).integer(8, 7).varint(20, 7);
  const std::string coded = bytes_of({{encoder(texts, numbers)}, {tensor_info("x", 8, {3})}, {"y"}});
  const test::Ran codes = test::run_model(onnx::parse_model(coded, "m.onnx"),
                                          {{"x", HostValue::of(onnx::Texts{{3}, {"blue", "green", "red"}})}});
  CHECK(codes.outputs[0].array.to_doubles() == std::vector<double>{7, -1, 5});
  const WireWriter keys = WireWriter().bytes(1, "keys_floats").number(7, NAN).number(7, 1.5F).varint(20, 6);
  const WireWriter words =
      WireWriter().bytes(1, "values_strings").bytes(9, "none").bytes(9, "half").varint(20, 8);
  const std::string named = bytes_of({{encoder(keys, words)}, {tensor_info("x", 1, {3})}, {"y"}});
  const test::Ran names = test::run_model(onnx::parse_model(named, "m.onnx"), {{"x", floats({1.5, NAN, 2})}});
  CHECK(names.outputs[0].texts.values == std::vector<std::string>{"half", "none", "_Unused"});
}

TEST_CASE("a sequence's tensors are inputs of the graph, and come back as a sequence") {
  WireWriter sequence = WireWriter().bytes(1, "s").message(2, WireWriter().message(4, WireWriter()));
  const std::string bytes = bytes_of(
      {{node_message("SequenceInsert", {"s", "x"}, {"y"}), node_message("SequenceAt", {"y", "last"}, {"z"})},
       {sequence, tensor_info("x", 1, {1})},
       {"y", "z"},
       {onnx::tensor_message("last", Array::scalar(i64, -1))}});
  const test::Ran ran =
      test::run_model(onnx::parse_model(bytes, "m.onnx"),
                      {{"s", HostValue::of({floats({1, 2}), floats({3})})}, {"x", floats({4})}});
  CHECK(ran.imported.graph.input_names() == std::vector<std::string>{"s.0", "s.1", "x"});
  REQUIRE(ran.outputs[0].items.size() == 3);
  CHECK(ran.outputs[0].items[0].array.identical(floats({1, 2}).array));
  CHECK(ran.outputs[1].array.identical(floats({4}).array));
}

TEST_CASE("tensors of less than a byte are packed, and sparse ones made dense") {
  const Array four = Array::of(i4, {3}, std::vector<double>{-8, 7, -1});
  const WireWriter values = onnx::tensor_message("w", Array::of(f32, {2}, std::vector<double>{5, 6})),
                   places = onnx::tensor_message("", Array::of(i64, {2}, std::vector<double>{0, 3}));
  const WireWriter sparse = WireWriter().message(1, values).message(2, places).integer(3, 2).integer(3, 2);
  const std::string bytes =
      bytes_of({{node_message("Identity", {"q"}, {"y"}), node_message("Identity", {"w"}, {"z"})},
                {},
                {"y", "z"},
                {onnx::tensor_message("q", four)},
                {sparse}});
  const test::Ran ran = test::run_model(onnx::parse_model(bytes, "m.onnx"), {});
  CHECK(ran.outputs[0].array.identical(four));
  CHECK(ran.outputs[1].array.identical(Array::of(f32, {2, 2}, std::vector<double>{5, 0, 0, 6})));
  const WireWriter outside = WireWriter().message(1, values).message(2, places).integer(3, 3);
  CHECK_THROWS_WITH_AS(
      test::run_model(onnx::parse_model(bytes_of({{}, {}, {"w"}, {}, {outside}}), "m.onnx"), {}),
      doctest::Contains("has indices outside of it"), InputError);
}

TEST_CASE("what would be much work is left to the program, however few bytes ask for it") {
  // A terabyte of ones that nobody reads; and what is little work, and too large to be kept.
  for (const double side : {500000.0, 5000.0}) {
    const std::string bytes =
        bytes_of({{node_message("ConstantOfShape", {"n"}, {"a"}),
                   node_message("ReduceSum", {"a"}, {"y"}, {integer_attribute("keepdims", 0)})},
                  {},
                  {"y", "a"},
                  {onnx::tensor_message("n", Array::of(i64, {2}, std::vector<double>{side, side}))}});
    const onnx::Imported imported = onnx::import_model(onnx::parse_model(bytes, "m.onnx"), {});
    for (const Value& output : imported.graph.outputs())
      CHECK(imported.graph.constant_value(output) == nullptr);
  }
}
