#include <doctest/doctest.h>

#include <millrace/operator.h>

#include "backend/ref/evaluate.h"
#include "support/codegen_support.h"
#include "support/random_graph.h"
#include "target/provider.h"

using namespace millrace;

namespace {

struct Product {
  Graph graph;
  std::unique_ptr<Kernel> kernel;
};

/// Null where the provider does not take it.
Product thin_product(const Type& left, const Type& right, bool transpose_b) {
  const auto provider = cpu::providers().at("thin-product").make();
  Product made;
  const Value y = made.graph.add("matmul", {made.graph.input("a", left), made.graph.input("b", right)},
                                 {{"transpose_b", transpose_b}});
  made.graph.set_outputs({y});
  if (!provider->why_not(made.graph, made.graph.node(y)))
    made.kernel = provider->build({made.graph, made.graph.node(y), {{}, {}}, {{}}});
  return made;
}

Array first_rows(const Array& of, int64_t rows) {
  Array first(of.type().dtype, {rows, of.shape()[1].size()});
  for (int64_t i = 0; i < first.count(); ++i) first.set(i, of.at(i));
  return first;
}

}  // namespace

TEST_CASE("products of a few rows agree with the reference, and each row with itself alone") {
  // Sums in one part and in several, and columns in several strips: of both a whole number and not.
  for (const auto& [k, n] : std::vector<std::pair<int64_t, int64_t>>{
           {192, 1376}, {193, 2051}, {3076, 96}, {1500, 181}, {100, 4099}, {8, 33000}})
    for (const DType dtype : {f32, bf16})
      for (const bool transpose_b : {false, true}) {
        const double most = dtype == f32 ? 1e-4 : 2e-2;
        const Array w =
            random_array({f32, transpose_b ? Shape{n, k} : Shape{k, n}}, 2, -0.1, 0.1).converted(dtype);
        const Array rows = random_array({f32, {16, k}}, 1).converted(dtype);
        Array alone;
        for (const int64_t m : {1, 2, 3, 5, 8, 10, 16}) {
          const Array x = first_rows(rows, m);
          const Product made = thin_product(x.type(), w.type(), transpose_b);
          if (!made.kernel && dtype == bf16) continue;  // a CPU that cannot
          CAPTURE(made.graph.str());
          REQUIRE(made.kernel);
          CodegenRun one, three;
          one.threads = 1;
          three.threads = 3;
          const std::vector<Array> given = {x, w};
          const Array got = run_kernel(*made.kernel, made.graph, given, three)[0];
          CHECK(run_kernel(*made.kernel, made.graph, given, one)[0].identical(got));
          if (m == 1) alone = got;
          CHECK(first_rows(got, 1).identical(alone));
          if (m != 1 && m != 10) continue;
          const std::vector<Array> exact = {x.converted(f32), w.converted(f32)};
          const Product wide = thin_product(exact[0].type(), exact[1].type(), transpose_b);
          CHECK(test::difference(got.converted(f32), ref::evaluate(wide.graph, exact)[0]) < most);
        }
      }
}

TEST_CASE("products of a few rows are left to others where these are as fast, and it says why") {
  const auto provider = cpu::providers().at("thin-product").make();
  const auto why = [&](const Type& left, const Type& right, bool transpose_a, bool constant,
                       bool transpose_b) {
    Graph graph;
    const Value b = constant ? graph.constant(Array(right)) : graph.input("b", right);
    const Value y = graph.add("matmul", {graph.input("a", left), b},
                              {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}});
    return provider->why_not(graph, graph.node(y)).value_or("");
  };
  const Type few{f32, {2, 512}}, matrix{f32, {512, 512}};
  CHECK(why(few, matrix, false, false, false).empty());
  CHECK(why(few, matrix, false, false, true).empty());
  for (const bool transpose_b : {false, true})
    CHECK(why(few, matrix, false, true, transpose_b) == "the right side can be packed before");
  CHECK(why({f32, {512, 2}}, matrix, true, false, false) == "the left side lies transposed");
  CHECK(why({f32, {17, 512}}, matrix, false, false, false) == "more than 16 rows");
  CHECK(why(few, {f32, {512, 511}}, false, false, false) == "the right side is small");
  CHECK(why({f64, {2, 512}}, {f64, {512, 512}}, false, false, false) == "only f32 and bf16, not f64");
}
