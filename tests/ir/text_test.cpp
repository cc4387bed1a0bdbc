#include <cmath>
#include <doctest/doctest.h>
#include <limits>

#include <millrace/error.h>
#include <millrace/graph.h>
#include <millrace/random.h>

#include "base/format.h"
#include "ir/operators.h"
#include "ops/build.h"
#include "support/allocations.h"
#include "support/refusal.h"
#include "support/samples.h"

using namespace millrace;

namespace {

/// The message with which the text is refused.
std::string refusal(std::string_view text) {
  return testing::refusal([&] { Graph::parse(text); });
}

std::string refused_node(std::string_view line) {
  return refusal(fmt::format("millrace graph 1\n%0 = input(\"x\") : f32[2, 3]\n{}\noutputs()\n", line));
}

Graph example() {
  Graph graph;
  ops::Build b(graph);
  const Value x = graph.input("a \"name\"\n", {f32, {Dim::named("batch"), 4}});
  graph.set_origin("stem.scale");
  const Value y = b.mul(x, b.broadcast(graph.scalar(f32, 0.1), b.shape(x)));
  graph.set_origin("");
  graph.set_outputs({y, graph.add("relu", {y})}, {"scaled", "positive"});
  return graph;
}

}  // namespace

TEST_CASE("a graph's text reads as it should") {
  CHECK(example().str() ==
        "millrace graph 1\n"
        "%0 = input(\"a \\\"name\\\"\\x0a\") : f32[batch, 4]\n"
        "%1 = constant() {value=f32[]{0.1}} : f32[] @\"stem.scale\"\n"
        "%2 = broadcast(%1) {shape=<batch, 4>} : f32[batch, 4] @\"stem.scale\"\n"
        "%3 = mul(%0, %2) : f32[batch, 4] @\"stem.scale\"\n"
        "%4 = relu(%3) : f32[batch, 4]\n"
        "outputs(\"scaled\": %3, \"positive\": %4)\n");
}

TEST_CASE("text parses back to an equal graph") {
  const Graph graph = example();
  CHECK(Graph::parse(graph.str()) == graph);
  Graph phases;
  const Value x = phases.input("x", {f32, {4}});
  phases.set_origin({"stem", Phase::backward});
  const Value y = phases.add("relu", {x});
  phases.set_origin({"", Phase::update});
  phases.set_outputs({phases.add("neg", {y})});
  CHECK(phases.str().find("@\"stem\" backward\n") != std::string::npos);
  CHECK(Graph::parse(phases.str()) == phases);
  CHECK(Graph::parse(phases.str()).node(2).origin.phase == Phase::update);
  CHECK(Graph::parse(Graph().str()) == Graph());
  Graph repeated;
  const Value z = repeated.input("z", {f32, {4}});
  repeated.set_origin(Origin("stem").repeated(Phase::backward));
  repeated.set_outputs({repeated.add("relu", {z})});
  CHECK(repeated.str().find("@\"stem\" backward again\n") != std::string::npos);
  CHECK(Graph::parse(repeated.str()) == repeated);
  CHECK(Graph::parse(repeated.str()).node(1).origin.str() == "stem, again (backward)");
}

TEST_CASE("every sample of every operator survives its text form") {
  for (const Operator* op : library_operators()) {
    for (const Sample& sample : op->samples) {
      const Graph graph = make_graph(*op, sample);
      CAPTURE(graph.str());
      CHECK(Graph::parse(graph.str()) == graph);
    }
  }
}

TEST_CASE("bodies that no operator builds are written") {
  Graph inner;
  const Value a = inner.input("x", {f32, {3}});
  inner.set_outputs({inner.add("neg", {a}), inner.add("sum", {a})});
  Graph middle;
  const Value b = middle.input("y", {f32, {3}});
  const Value first =
      middle.add_with_body(get_operator("fused"), {b}, {}, std::make_shared<const Graph>(inner));
  middle.set_outputs({{first.node, 1}, first});
  Graph outer;
  const Value c = outer.input("z", {f32, {3}});
  outer.set_origin("here");
  const Value last =
      outer.add_with_body(get_operator("fused"), {c}, {}, std::make_shared<const Graph>(middle));
  outer.set_outputs({{last.node, 1}});
  const Graph parsed = Graph::parse(outer.str());
  CHECK(parsed == outer);
  CHECK_NOTHROW(parsed.verify());
}

TEST_CASE("constants keep their bits") {
  const double inf = std::numeric_limits<double>::infinity();
  for (const DType dtype : all_dtypes()) {
    Graph graph;
    std::vector<Value> outputs;
    if (dtype.is_float())
      for (const double value :
           {0.0, -0.0, inf, -inf, 0.1, 1e-310, 5e-324, 1e-40, 65504.0, 3.4e38, 1.7976931348623157e308})
        outputs.push_back(graph.scalar(dtype, value));
    Array bits(dtype, {64});
    RandomStream random(3, dtype.bits);
    auto* bytes = static_cast<uint8_t*>(bits.data());
    for (int64_t i = 0; i < bits.bytes(); ++i)
      bytes[i] =
          dtype.is_bool() ? random.next() & 1 : static_cast<uint8_t>(random.next());  // NaN payloads too
    for (int64_t i = 0; dtype.bits < 8 && i < bits.count(); ++i)  // as such values lie in their bytes
      dtype.is_int() ? bits.set_int(i, bytes[i])
                     : void(bytes[i] &= static_cast<uint8_t>((1 << dtype.bits) - 1));
    if (dtype == f32) bits.as<uint32_t>()[0] = 0xffc12345;
    if (dtype == i64) bits.as<int64_t>()[0] = std::numeric_limits<int64_t>::min();
    outputs.push_back(graph.constant(bits));
    graph.set_outputs(outputs);
    CAPTURE(dtype.name());
    CHECK(Graph::parse(graph.str()) == graph);
  }
}

TEST_CASE("attributes of every kind survive") {
  Graph graph;
  const Value x = graph.input("x", {f32, {4}});
  const double inf = std::numeric_limits<double>::infinity();
  for (const double bound : {inf, 3.0, 1e300, 0.1 + 0.2})
    graph.add("clamp", {x}, {{"low", -inf}, {"high", bound}});
  graph.set_outputs({x});
  CHECK(Graph::parse(graph.str()) == graph);
}

TEST_CASE("text of another version is refused by name") {
  CHECK(refusal("millrace graph 2\noutputs()\n") ==
        "graph text, line 1: this is graph text of version 2, but only version 1 can be read: use the "
        "Millrace that "
        "wrote it");
  CHECK(refusal("millrace graph 0\n").find("version 0") != std::string::npos);
  CHECK(refusal("{\"nodes\": []}") == "graph text, line 1: a graph begins with 'millrace graph 1'");
  CHECK(refusal("") != "");
}

TEST_CASE("what is wrong in a text is told with its line") {
  CHECK(refused_node("%1 = rellu(%0) : f32[2, 3]") ==
        "graph text, line 3: there is no operator 'rellu'; the nearest is 'relu'");
  CHECK(refused_node("%1 = sum(%0) {axis=[1]} : f32[2]") ==
        "graph text, line 3: sum has no attribute 'axis'; the nearest is 'axes'");
  CHECK(refused_node("%1 = sum(%0) {axes=1} : f32[2]") ==
        "graph text, line 3: attribute 'axes' of sum must be a list of whole numbers, not a whole number");
  CHECK(refused_node("%1 = reshape(%0) : f32[6]") ==
        "graph text, line 3: reshape needs the attribute 'shape'");
  CHECK(refused_node("%1 = reshape(%0) {shape=3} : f32[6]") ==
        "graph text, line 3: attribute 'shape' of reshape must be a shape, not a whole number");
  CHECK(refused_node("%1 = relu(%0) : f32[6]") ==
        "graph text, line 3: the types of relu are not those written");
  CHECK(refused_node("%1 = relu(%2) : f32[2, 3]") == "graph text, line 3: the value %2 is not there yet");
  CHECK(refused_node("%1 = relu(%0.1) : f32[2, 3]") == "graph text, line 3: the value %0.1 is not there yet");
  CHECK(refused_node("%2 = relu(%0) : f32[2, 3]") == "graph text, line 3: the value %1 is expected here");
  CHECK(refused_node("%1 = add(%0) : f32[2, 3]").find("line 3: add(f32[2, 3]): 1 operands given") !=
        std::string::npos);
  CHECK(refused_node("%1 = fused(%0) : f32[2, 3]") == "graph text, line 3: fused needs a body");
  CHECK(refused_node("%1 = constant() {value=f32[99999999999]{1}} : f32[99999999999]") ==
        "graph text, line 3: 1 values are given for f32[99999999999]");
  CHECK(refused_node("%1 = constant() {value=i8[1]{300}} : i8[1]") ==
        "graph text, line 3: 300 is not a value of i8");
  CHECK(refused_node("%1 = iota() {shape=<-3>} : i64[3]") == "graph text, line 3: '-3' is not a dimension");
  CHECK(refused_node("%1 = reshape(%0) {shape=<9999999999, 9999999999>} : f32[1]").find("too large") !=
        std::string::npos);
  CHECK(refused_node("%1 = iota() {shape=<99999999999999999999>} : i64[1]") != "");
  CHECK(refused_node("%1 = relu(%0) : f32[2, 3] junk") == "graph text, line 3: 'junk' is not understood");
  CHECK(refusal("millrace graph 1\n%0 = input(\"x\") : f32[2]\n") ==
        "graph text, line 2: the text ends before the outputs");
}

TEST_CASE("hostile text is refused with its line, and asks for no memory") {
  // Line 3; %0 is f32[2, 3].
  const std::vector<std::string> nodes = {
      // sizes that overflow, alone or together
      "%1 = input(\"y\") : f32[1099511627775, 1099511627775]",
      "%1 = input(\"y\") : f32[0, 9223372036854775807]",
      "%1 = input(\"y\") : i8[1048576, 1048576, 1048576, 1048576]",
      "%1 = input(\"y\") : f32[1048576*1048576*1048576*1048576]",
      "%1 = input(\"y\") : f32[3000000000*batch*3000000000*length*3000000000]",
      "%1 = input(\"y\") : f32[-1]",
      "%1 = input(\"y\") : f32[2",
      "%1 = input(\"y\") : f32",
      "%1 = input(\"y\") : f31[2]",
      "%1 = input(\"y\" : f32[2]",
      "%1 = constant() {value=f32[1099511627775]{}} : f32[1099511627775]",
      "%1 = constant() {value=f32[0, 1099511627775]{1}} : f32[0, 1099511627775]",
      "%1 = constant() {value=f32[batch]{1}} : f32[batch]",
      "%1 = constant() {value=f32[3]{1, 2, 3} : f32[3]",
      "%1 = constant() {value=u8[1]{-1}} : u8[1]",
      "%1 = iota() {shape=<1099511627775, 1099511627775>} : i64[1099511627775, 1099511627775]",
      "%1 = iota() {axis=9223372036854775807, shape=<3>} : i64[3]",
      "%1 = iota() {axis=-9223372036854775808, shape=<3>} : i64[3]",
      "%1 = broadcast(%0) {shape=<1099511627775, 1099511627775, 2, 3>} : f32[1099511627775, 1099511627775, "
      "2, 3]",
      "%1 = reshape(%0) {shape=<1099511627775, 1099511627775, 1099511627775>} : f32[6]",
      "%1 = pad(%0) {high=[9223372036854775807, 0], low=[9223372036854775807, 0]} : f32[0, 3]",
      "%1 = pad(%0) {high=[0, 0], interior=[2147483647, 2147483647], low=[0, 0]} : f32[1, 1]",
      "%1 = slice(%0) {ends=[1, 1], starts=[0, 0], steps=[0, 0]} : f32[1, 1]",
      "%1 = slice(%0) {ends=[1], starts=[0]} : f32[1, 1]",
      "%1 = transpose(%0) {permutation=[0, 0]} : f32[2, 2]",
      "%1 = transpose(%0) {permutation=[9223372036854775807, -1]} : f32[2, 3]",
      "%1 = sum(%0) {axes=[-9223372036854775808], keep_dims=false} : f32[2]",
      "%1 = concat(%0, %0) {axis=9223372036854775807} : f32[4, 3]",
      "%1 = matmul(%0, %0) : f32[2, 3]",
      "%1 = conv2d(%0, %0) : f32[2, 3]",
      "%1 = max_pool2d(%0) {kernel=[9223372036854775807, 1]} : f32[2, 3]",
      // attributes of wrong kinds, twice, too many, missing
      "%1 = sum(%0) {axes=[1.5]} : f32[2]",
      "%1 = sum(%0) {axes=nan} : f32[2]",
      "%1 = sum(%0) {axes=<1>} : f32[2]",
      "%1 = sum(%0) {axes=\"1\"} : f32[2]",
      "%1 = sum(%0) {axes=f32[1]{1}} : f32[2]",
      "%1 = sum(%0) {axes=[1], axes=[1]} : f32[2]",
      "%1 = sum(%0) {axes=[99999999999999999999]} : f32[2]",
      "%1 = sum(%0) {=3} : f32[2]",
      "%1 = sum(%0) {axes=} : f32[2]",
      "%1 = sum(%0) {axes=[1} : f32[2]",
      "%1 = sum(%0) {axes=[1]",
      "%1 = relu(%0) {alpha=1} : f32[2, 3]",
      "%1 = reshape(%0) : f32[6]",
      "%1 = cast(%0) {dtype=f32[1]{1}} : f32[2, 3]",
      "%1 = clamp(%0) {high=1, low=0} : f32[2, 3]",  // numbers are 1.0 and 0.0
      // operators and operands that are not there
      "%1 = (%0) : f32[2, 3]",
      "%1 = no_such_operator(%0) : f32[2, 3]",
      "%1 = constant(%0) {value=f32[]{1}} : f32[]",
      "%1 = input(%0) : f32[2, 3]",
      "%1 = relu() : f32[2, 3]",
      "%1 = relu(%0, %0) : f32[2, 3]",
      "%1 = relu(%1) : f32[2, 3]",
      "%1 = relu(%-1) : f32[2, 3]",
      "%1 = relu(%0.-1) : f32[2, 3]",
      "%1 = relu(%99999999999999999999) : f32[2, 3]",
      "%1 = relu(%) : f32[2, 3]",
      "%1 = relu(%0) : f32[2, 3], f32[2, 3]",
      "%1 = relu(%0)",
      "%18446744073709551617 = relu(%0) : f32[2, 3]",
      "%1 = relu(%0) : f32[2, 3] @\"layer",
      "outputs(\"y\": %7)",
      "outputs(%0)",
      // bodies where none is taken, that are none, or that do not fit
      "%1 = relu(%0) : f32[2, 3] body {\noutputs()\n}",
      "%1 = softmax(%0) {axis=1} : f32[2, 3] body {\noutputs()\n}",
      "%1 = fused(%0) : f32[2, 3]",
      "%1 = fused(%0) : f32[2, 3] body {",
      "%1 = fused(%0) : f32[2, 3] body {\n}",
      "%1 = fused(%0) : f32[2, 3] body {\n%0 = input(\"x\") : f32[3, 2]\noutputs(\"y\": %0)\n}",
      "%1 = scan(%0) {carries=9223372036854775807, length=<2>, sequences=1} : f32[2, 3]",
      "%1 = scan(%0) {carries=9223372036854775807, length=<2>, sequences=1} : f32[2, 3] body {\noutputs()\n}",
      "%1 = scan(%0) {carries=0, length=<1099511627775>, sequences=0} : f32[1099511627775, 1099511627775, 2] "
      "body {\n"
      "%0 = input(\"x\") : f32[2, 3]\n%1 = iota() {dtype=f32, shape=<1099511627775, 2>} : f32[1099511627775, "
      "2]\n"
      "outputs(\"y\": %1)\n}",
      std::string("%1 = relu(%0) : f32[2, 3]\0", 26),
      "%1 = " + std::string(100000, 'a') + "(%0) : f32[2, 3]",
      "%1 = sum(%0) {axes=" + std::string(100000, '[') + "} : f32[2]",
      "%1 = relu" + std::string(100000, '(') + " : f32[2]",
      "%1 = relu(%0) {" + std::string(100000, 'a') + "=1} : f32[2]",
      "%1 = reshape(%0) {shape=<" + std::string(100000, '*') + ">} : f32[6]",
      "%1 = input(\"" + std::string(100000, '\\') + " : f32[2]",
  };
  for (const std::string& node : nodes) {
    CAPTURE(node.substr(0, 200));
    const test::CountAllocations allocations;
    const std::string message = refused_node(node);
    CHECK(message.find("graph text, line ") == 0);
    CHECK(message.size() < 2000);
    for (const auto& place : allocations.places()) CHECK(place.largest < (4 << 20));
  }
}

TEST_CASE("types may be as large as memory could be, and cost nothing before they are computed") {
  const test::CountAllocations allocations;
  CHECK(refused_node("%1 = iota() {shape=<1000000, 10000000>} : i64[1000000, 10000000]") == "");
  CHECK(refused_node("%1 = input(\"y\") : f32[0, 1099511627775, 1099511627775]") == "");
  CHECK(refused_node("%1 = broadcast(%0) {shape=<1000000000, 2, 3>} : f32[1000000000, 2, 3]") == "");
  for (const auto& place : allocations.places()) CHECK(place.largest < (1 << 20));
}

TEST_CASE("bodies nested too deep are refused") {
  std::string text = "millrace graph 1\n";
  for (int i = 0; i < 100000; ++i) text += "%0 = fused() : f32[] body {\n";
  CHECK(refusal(text).find("nested") != std::string::npos);
}

TEST_CASE("damaged text is refused or read, but never crashes") {
  RandomStream random(11, 0);
  const std::vector<std::string> texts = [&] {
    std::vector<std::string> list;
    for (const Operator* op : library_operators())
      if (!op->samples.empty()) list.push_back(make_graph(*op, op->samples[0]).str());
    list.push_back(example().str());
    return list;
  }();
  int refused = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string text = texts[random.below(static_cast<uint32_t>(texts.size()))];
    for (uint32_t edits = 1 + random.below(3); edits > 0 && !text.empty(); --edits) {
      const size_t at = 17 + random.below(static_cast<uint32_t>(text.size() - 17));
      switch (random.below(4)) {
        case 0:
          text.erase(at, 1 + random.below(8));
          break;
        case 1:
          text[at] = static_cast<char>(random.next());
          break;
        case 2:
          text.insert(at, text.substr(random.below(static_cast<uint32_t>(text.size())), random.below(20)));
          break;
        default:
          text.resize(at);
      }
      if (text.size() < 18) break;
    }
    refused += refusal(text) != "";
  }
  CHECK(refused > 2000);
}
