#include <millrace/operator.h>

#include "ops/build.h"
#include "ops/pooling.h"
#include "passes/rules/rule.h"

namespace millrace {
namespace {

using Ints = std::vector<int64_t>;

/// One dimension of a pooling.
struct Side {
  int64_t size, windows, kernel, stride, before, after;

  /// Elements that are taken together first: windows are made of whole ones.
  int64_t block() const {
    if (before > 0 || after > 0) return 1;
    return windows == 1 ? kernel : kernel % stride == 0 ? stride : 1;
  }
  int64_t used() const { return (windows - 1) * stride + kernel; }
};

class LargeWindow {
 public:
  LargeWindow(Graph& graph, const Node& node, bool mean) : b_(graph), node_(node), mean_(mean) {}

  Value pooled(Value x, const Side& rows, const Side& columns) {
    if (rows.kernel == 1 && columns.kernel == 1 && rows.stride == 1 && columns.stride == 1) return x;
    const int64_t high = rows.block(), wide = columns.block();
    if (small(rows, columns)) return window(x, rows, columns);
    if (high * wide > 1) return of_blocks(x, rows, columns, high, wide);
    if (rows.kernel == 1 || columns.kernel == 1) return window(x, rows, columns);
    // Of columns what is the mean, or the largest, of each row.
    return pooled(pooled(x, rows, alone(columns)), alone(rows, rows.windows), columns);
  }

  static bool small(const Side& rows, const Side& columns) {
    constexpr int64_t most = 64;  // elements, each of which is read by code of its own
    return rows.kernel * columns.kernel <= most;
  }

 private:
  static Side alone(const Side& side, int64_t size = 0) {
    const int64_t all = size > 0 ? size : side.size;
    return {all, all, 1, 1, 0, 0};
  }

  Value of_blocks(Value x, const Side& rows, const Side& columns, int64_t high, int64_t wide) {
    const Shape shape = b_.shape(x);
    if (rows.used() < rows.size || columns.used() < columns.size)
      x = b_.graph().add("slice", {x},
                         {{"starts", Ints(4, 0)},
                          {"ends", Ints{shape[0].size(), shape[1].size(), rows.used(), columns.used()}}});
    const int64_t down = rows.used() / high, right = columns.used() / wide;
    x = b_.reshape(x, {shape[0], shape[1], down, high, right, wide});
    x = mean_ ? b_.mean(x, {3, 5}, false) : b_.max(x, {3, 5}, false);
    const Side fewer_rows{down, rows.windows, rows.kernel / high, std::max<int64_t>(1, rows.stride / high), 0,
                          0};
    const Side fewer_columns{
        right, columns.windows, columns.kernel / wide, std::max<int64_t>(1, columns.stride / wide), 0, 0};
    return pooled(x, rows.windows == 1 ? alone(fewer_rows) : fewer_rows,
                  columns.windows == 1 ? alone(fewer_columns) : fewer_columns);
  }

  Value window(Value x, const Side& rows, const Side& columns) {
    Attributes attributes = node_.attributes;
    attributes.set("kernel", Ints{rows.kernel, columns.kernel});
    attributes.set("strides", Ints{rows.stride, columns.stride});
    attributes.set("pads", Ints{rows.before, columns.before, rows.after, columns.after});
    return b_.graph().add(*node_.op, {x}, std::move(attributes));
  }

  ops::Build b_;
  const Node& node_;
  bool mean_;
};

// Windows are written out, element by element: large ones are as many instructions, which take minutes to
// compile. They are taken apart: into blocks that they are made of, or rows and columns.
Value large_window(Graph& graph, const Node& node, const std::vector<Value>& operands) {
  const auto by = ops::pooled_by(node);
  if (!by) return {};
  const ops::Pooling p = ops::pooling(graph.type(operands[0]).shape, node.attributes);
  const Side rows{p.height, p.out_height, p.kernel_h, p.stride_h, p.top, p.bottom},
      columns{p.width, p.out_width, p.kernel_w, p.stride_w, p.left, p.right};
  if (LargeWindow::small(rows, columns) || node.types[0].shape.count() == 0) return {};
  const bool nothing_to_do = rows.block() * columns.block() == 1 && (p.kernel_h == 1 || p.kernel_w == 1);
  return nothing_to_do ? Value{}
                       : LargeWindow(graph, node, *by == Reduction::mean).pooled(operands[0], rows, columns);
}

}  // namespace

MILLRACE_RULE(large_window){.name = "large-window",
                            .doc = "pooling by large windows goes by blocks, or by rows and columns",
                            .place = 230,
                            .exact = false,
                            .apply = large_window};

}  // namespace millrace
