#include <millrace/operator.h>

#include "ops/build.h"
#include "ops/convolution.h"
#include "passes/rules/rule.h"

namespace millrace {

// A transposed convolution whose steps are as wide as its window, as U-Nets have it on their way up, writes
// patches that do not overlap: each is a product of its pixel's channels and the window.
static Value transposed_convolution_of_patches(Graph& graph, const Node& node,
                                               const std::vector<Value>& operands) {
  if (ops::convolution_part(node) != ops::ConvolutionPart::input_gradient) return {};
  const Shape& result = node.types[0].shape;
  const ops::Convolution c = ops::convolution(result, graph.type(operands[1]).shape, node.attributes);
  const int64_t high = c.kernel_height, wide = c.kernel_width;
  if (c.groups != 1 || high * wide == 1 || high != c.stride_h || wide != c.stride_w || c.dilation_h != 1 ||
      c.dilation_w != 1 || c.out_height * high != c.in_height || c.out_width * wide != c.in_width ||
      c.top != 0 || c.left != 0 || result.count() == 0)
    return {};
  const int64_t from = c.out_channels, to = c.in_channels, patch = high * wide * to;
  ops::Build b(graph);
  const Value pixels =
      b.reshape(b.transpose(operands[0], {0, 2, 3, 1}), {c.images * c.out_height * c.out_width, from});
  const Value window = b.reshape(b.transpose(operands[1], {0, 2, 3, 1}), {from, patch});
  const Value patches =
      b.reshape(b.matmul(pixels, window), {c.images, c.out_height, c.out_width, high, wide, to});
  const Value rows =
      b.reshape(b.transpose(patches, {0, 1, 3, 2, 4, 5}), {c.images, c.in_height, c.in_width, to});
  return b.transpose(rows, {0, 3, 1, 2});
}

MILLRACE_RULE(transposed_convolution_of_patches){
    .name = "transposed-convolution-of-patches",
    .doc = "a transposed convolution whose patches do not overlap is a product",
    .place = 220,
    .exact = false,
    .apply = transposed_convolution_of_patches};

}  // namespace millrace
