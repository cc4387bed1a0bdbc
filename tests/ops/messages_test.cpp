// Wrong shapes give messages that name the operator, the shapes and the layer.
#include <doctest/doctest.h>

#include <millrace/error.h>
#include <millrace/operator.h>

#include "support/refusal.h"

using namespace millrace;

namespace {

using Ints = std::vector<int64_t>;

std::string message(std::string_view op, const std::vector<Type>& operands, const Attributes& attributes = {},
                    const std::string& layer = "") {
  Graph graph;
  std::vector<Value> values;
  for (const Type& type : operands) values.push_back(graph.input("x", type));
  graph.set_origin(layer);
  return testing::refusal<TypeError>([&] { graph.add(op, values, attributes); });
}

}  // namespace

TEST_CASE("a convolution of wrong channels names shapes and layer") {
  CHECK(
      message("conv2d", {{f32, {8, 3, 32, 32}}, {f32, {16, 4, 3, 3}}}, {}, "blocks.0.conv1") ==
      "conv2d(f32[8, 3, 32, 32], f32[16, 4, 3, 3]): the input has 3 channels, the weights expect 4 (in layer "
      "'blocks.0.conv1')");
  CHECK(message("conv2d", {{f32, {8, 3, 32, 32}}, {f32, {16, 2, 3, 3}}}, {{"groups", int64_t{2}}}) ==
        "conv2d(f32[8, 3, 32, 32], f32[16, 2, 3, 3]): the input has 3 channels, the weights expect 4 (2 "
        "groups of 2)");
  CHECK(message("conv2d", {{f32, {8, 3, 4, 4}}, {f32, {16, 3, 5, 5}}}) ==
        "conv2d(f32[8, 3, 4, 4], f32[16, 3, 5, 5]): the kernel reaches over 5 rows, but the padded input has "
        "only 4");
  CHECK(
      message("conv2d", {{f32, {8, 3, Dim::named("height"), 4}}, {f32, {16, 3, 3, 3}}})
          .ends_with("height and width must be numbers, not named dimensions (only the batch may be named)"));
  CHECK(message("conv2d", {{f32, {Dim::named("batch"), 3, 8, 8}}, {f32, {16, 3, 3, 3}}}) == "");
}

TEST_CASE("a matrix product of wrong sizes names them") {
  CHECK(message("matmul", {{f32, {4, 5}}, {f32, {6, 7}}}, {}, "head") ==
        "matmul(f32[4, 5], f32[6, 7]): rows of the left have 5 elements, columns of the right have 6 (in "
        "layer 'head')");
  CHECK(message("matmul", {{f32, {Dim::named("batch"), 5}}, {f32, {5, 7}}}) == "");
}

TEST_CASE("a pooling window larger than the picture names both") {
  CHECK(message("max_pool2d", {{f32, {1, 1, 2, 2}}}, {{"kernel", Ints{3, 3}}}) ==
        "max_pool2d(f32[1, 1, 2, 2]): the window has 3 rows, the padded input only 2");
  CHECK(message("avg_pool2d", {{f32, {1, 1, 4, 4}}}, {{"kernel", Ints{2, 2}}, {"pads", Ints{0, 2, 0, 0}}}) ==
        "avg_pool2d(f32[1, 1, 4, 4]): the padding of columns must be smaller than the window (2)");
}
