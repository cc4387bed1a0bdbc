// What a user may do wrong with types, arrays and graphs is told as an error of theirs.
#include <cstdint>
#include <doctest/doctest.h>
#include <memory>
#include <string>

#include <millrace/error.h>
#include <millrace/graph.h>
#include <millrace/operator.h>

#include "support/refusal.h"

using namespace millrace;

namespace {

constexpr int64_t huge = int64_t{1} << 62;

template <typename F>
std::string type_error(const F& wrong) {
  return testing::refusal<TypeError>(wrong);
}

}  // namespace

TEST_CASE("types that no value can have are refused by graphs and arrays") {
  CHECK(Type{f32, {2, 0, 3}}.fault().empty());
  CHECK(Type{f32, {0, (int64_t{1} << 48) - 1}}.fault().empty());
  CHECK(Type{f32, {0, huge}}.fault() == "the shape [0, 4611686018427387904] is too large");
  CHECK(Type{f32, {Dim::named("n"), 3}}.fault().empty());
  CHECK(Type{f32, {2, -1}}.fault() == "the shape [2, -1] has a negative size");
  CHECK(Type{f32, {-2, -1}}.fault() == "the shape [-2, -1] has a negative size");
  CHECK(Type{f64, {huge}}.fault() == "the shape [4611686018427387904] is too large");
  CHECK(Type{{Kind::unsigned_int, 24}, {}}.fault() == "there is no dtype u24");
  Graph graph;
  CHECK(type_error([&] {
          graph.input("x", {f32, {-2}});
        }) == "input 'x': the shape [-2] has a negative size");
  const Value x = graph.input("x", {f32, {2, 3}});
  CHECK(type_error([&] {
          graph.add("reshape", {x}, {{"shape", Shape{-2, -3}}});
        }) == "attribute 'shape' of reshape: the shape [-2, -3] has a negative size");
  CHECK(type_error([&] {
          graph.add("iota", {}, {{"shape", Shape{-3}}});
        }) == "attribute 'shape' of iota: the shape [-3] has a negative size");
  CHECK(type_error([&] {
          graph.add("cast", {x}, {{"dtype", DType{Kind::signed_int, 3}}});
        }) == "cast(f32[2, 3]): there is no dtype i3");
  CHECK_THROWS_AS(Array(f32, {-1}), TypeError);
  CHECK_THROWS_AS(Array(f64, {huge}), TypeError);
  CHECK_THROWS_AS(Array(f32, {int64_t{1} << 45}), Error);  // 128 TB
  CHECK_THROWS_AS(Array::of(f32, {2}, std::vector<double>{1, 2, 3}), TypeError);
  CHECK_THROWS_AS(Array(f32, {2}).reshaped({3}), TypeError);
  CHECK_THROWS_AS(Array().reshaped({}), TypeError);
}

TEST_CASE("texts that are almost types are refused") {
  CHECK(Type::parse("f32[]") == Type{f32, {}});
  CHECK(Dim::named("b") * Dim::named("a") == Dim::named("a") * Dim::named("b"));
  CHECK((Dim(2) * Dim::named("b") * Dim::named("a")).str() == "2*a*b");
  CHECK(Type::parse("i8[2, 3*n]") == Type{i8, {2, Dim(3) * Dim::named("n")}});
  for (const char* text :
       {"", "f32", "f32[", "f32[,]", "f32[2,]", "f32[2,,3]", "f32[2*]", "f32[*2]", "f32[-1]"})
    CHECK_THROWS_AS(Type::parse(text), InputError);
  CHECK_THROWS_AS(Dim(INT64_MIN) / Dim(-1), TypeError);
}

TEST_CASE("a node with foreign operands or wrong attributes is a TypeError that says which") {
  Graph graph;
  const Value x = graph.input("x", {f32, {2, 3}});
  CHECK(type_error([&] { graph.add("relu", {Value{}}); }) == "relu: operand 0 is not a value of this graph");
  CHECK(type_error([&] {
          graph.add("add", {x, Value{x.node, 1}});
        }) == "add: operand 1 is not a value of this graph");
  CHECK(type_error([&] { graph.add("reshape", {x}); }) == "reshape needs the attribute 'shape'");
  CHECK(type_error([&] {
          graph.add("sum", {x}, {{"axis", int64_t{1}}});
        }) == "sum has no attribute 'axis'; the nearest is 'axes'");
  CHECK(type_error([&] {
          graph.add("sum", {x}, {{"axes", int64_t{1}}});
        }) == "attribute 'axes' of sum must be a list of whole numbers, not a whole number");
  CHECK(type_error([&] {
          graph.add("reshape", {x}, {{"shape", 1.0}});
        }) == "attribute 'shape' of reshape must be a shape, not a number");
  graph.set_origin("stem");
  CHECK(type_error([&] {
          graph.add("rms_norm", {x}, {{"eps", -1.0}});
        }) == "attribute 'eps' of rms_norm must be at least 0, not -1 (in layer 'stem')");
  graph.set_origin("");
  CHECK_THROWS_AS(graph.add("input", {}), TypeError);
  CHECK_THROWS_AS(graph.add("fused", {x}), TypeError);
  CHECK_THROWS_AS(graph.constant(Array()), TypeError);
  CHECK(graph.size() == 1);
}

TEST_CASE("what an operator's type rule gives must fit its operands") {
  Graph graph;
  const Value x = graph.input("x", {f32, {2, 3}});
  Operator own = get_operator("relu");
  own.op_class = OpClass::elementwise;
  own.body = nullptr;
  own.types = [](const TypeContext&) { return std::vector<Type>{}; };
  CHECK(type_error([&] { graph.add(own, {x}, {}); }).find("its type rule gives no result") !=
        std::string::npos);
  for (const Shape& shape : {Shape{3}, Shape{3, 3}, Shape{70000}}) {
    own.types = [&](const TypeContext&) { return std::vector<Type>{{f32, shape}}; };
    CHECK(type_error([&] { graph.add(own, {x}, {}); }).find("to which f32[2, 3] is not broadcast") !=
          std::string::npos);
  }
  own.types = [](const TypeContext&) { return std::vector<Type>{{f32, {4, 2, 3}}}; };
  CHECK(graph.type(graph.add(own, {x}, {})).shape == Shape{4, 2, 3});
}

TEST_CASE("outputs, bodies and arguments that do not fit are TypeErrors") {
  Graph graph, part;
  const Value x = graph.input("x", {f32, {2}});
  CHECK(type_error([&] { graph.set_outputs({x, {7, 0}}); }) == "output 1 is not a value of this graph");
  CHECK_THROWS_AS(graph.set_outputs({x}, {"a", "b"}), TypeError);
  part.set_outputs({part.add("relu", {part.input("a", {f32, {3}})})});
  CHECK(type_error([&] { inline_graph(graph, part, {}); }) ==
        "0 arguments are given for a graph of 1 inputs");
  const Operator& fused = get_operator("fused");
  CHECK_THROWS_AS(graph.add_with_body(fused, {x}, {}, std::make_shared<const Graph>(part)), TypeError);
  CHECK_THROWS_AS(graph.add_with_body(fused, {x}, {}, nullptr), TypeError);
  CHECK_THROWS_AS(graph.add_with_body(get_operator("add"), {x}, {}, std::make_shared<const Graph>(part)),
                  TypeError);
}

TEST_CASE("the verifier finds what a pass could break") {
  const auto damage = [](void (*wrong)(Node&)) -> std::string {
    Graph body, graph;
    const Value a = body.input("a", {f32, {2, 3}});
    body.set_outputs({body.add("neg", {a})});
    const Value x = graph.input("x", {f32, {2, 3}});
    const Value y = graph.add("sum", {x}, {{"axes", std::vector<int64_t>{1}}});
    const Value z = graph.add_with_body(get_operator("fused"), {x}, {}, std::make_shared<const Graph>(body));
    graph.set_outputs({y, z});
    graph.verify();
    wrong(const_cast<Node&>(graph.node(y)));
    wrong(const_cast<Node&>(graph.node(z)));
    return testing::refusal<InternalError>([&] { graph.verify(); });
  };
  const auto finds = [&](void (*wrong)(Node&), const char* what) {
    const std::string found = damage(wrong);
    CAPTURE(found);
    CHECK(found.find(what) != std::string::npos);
  };
  CHECK(damage([](Node&) {}) == "");
  finds([](Node& n) { n.op = nullptr; }, "node 1 has no operator");
  finds([](Node& n) { n.operands[0].node = 2; }, "node 1 (sum) uses a later value");
  finds([](Node& n) { n.operands[0].output = 1; }, "node 1 (sum) uses result 1 of input");
  finds(
      [](Node& n) {
        n.types = std::vector<Type>{{f64, {2}}};
      },
      "node 1 (sum) has types f64[2], its rule gives f32[2]");
  finds([](Node& n) { n.attributes.set("keep_dims", true); }, "its rule gives f32[2, 1]");
  finds([](Node& n) { n.attributes = {}; }, "node 1 (sum) lacks the attribute 'axes'");
  finds([](Node& n) { n.attributes.set("axes", int64_t{1}); },
        "node 1 (sum): attribute 'axes' must be a list of whole numbers, not a whole number");
  finds([](Node& n) { n.attributes.set("axis", int64_t{1}); },
        "node 1 (sum) has attributes that its operator does not declare");
  finds(
      [](Node& n) {
        if (n.body) n.types = std::vector<Type>{{f32, {6}}};
      },
      "node 2 (fused): type of body output 0");
  finds(
      [](Node& n) {
        if (n.body) n.operands.push_back(n.operands[0]);
      },
      "node 2 (fused) and its body differ");
  finds(
      [](Node& n) {
        if (n.body) n.types = {};
      },
      "node 2 (fused) and its body differ");
}

TEST_CASE("a copied node has the types of what it is given") {
  Graph from;
  const Value a = from.input("a", {f32, {2, 3}}), b = from.input("b", {f32, {3, 4}});
  from.set_origin("head");
  const Value product = from.add("matmul", {a, b});

  Graph to;
  const Value same = to.input("a", {f32, {2, 3}}), longer = to.input("longer", {f32, {5, 3}});
  const Value right = to.input("b", {f32, {3, 4}}), wide = to.input("wide", {f64, {3, 4}});
  to.set_origin("tail");
  const Value like = to.add_copy(from, product.node, {same, right});
  CHECK(to.type(like) == Type{f32, {2, 4}});
  CHECK(to.node(like).attributes == from.node(product).attributes);
  CHECK(to.node(like).origin.layer == "tail");
  CHECK(to.type(to.add_copy(from, product.node, {longer, right})) == Type{f32, {5, 4}});
  to.set_origin("head");
  const std::vector<Value> elsewhere{same, right};
  CHECK(to.node(to.add_copy(from, product.node, elsewhere)).operands == elsewhere);
  to.set_origin("tail");
  const int before = to.size();
  CHECK(type_error([&] { to.add_copy(from, product.node, {same, wide}); }).find("matmul") == 0);
  CHECK(type_error([&] { to.add_copy(from, product.node, {same}); }).find("matmul") == 0);
  CHECK(type_error([&] { to.add_copy(from, product.node, {same, {99, 0}}); }).find("matmul: operand 1") == 0);
  CHECK(type_error([&] { to.add_copy(from, a.node, {}); }).find("input") == 0);
  CHECK(to.size() == before);
}

TEST_CASE("a graph that has a constant with another keeps its elements where the other drops them") {
  Graph graph;
  const Value constant = graph.scalar(f32, 7);
  graph.set_outputs({constant});
  Graph other = graph;
  other.drop_elements(constant.node);
  CHECK(other.constant_value(constant)->empty());
  CHECK(graph.constant_value(constant)->at(0) == 7);
}
