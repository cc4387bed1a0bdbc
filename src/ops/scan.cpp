#include "ops/scan.h"

#include "base/format.h"
#include "ops/body.h"
#include "ops/build.h"
#include "ops/registry.h"
#include "ops/work.h"

using namespace millrace;

namespace millrace::ops {

Scan scan_of(const Node& node) {
  Scan s;
  s.conditional = node.attributes.find("sequences") == nullptr;  // a while_loop has none
  s.carries = static_cast<int>(node.attributes.integer("carries"));
  if (!s.conditional) s.sequences = static_cast<int>(node.attributes.integer("sequences"));
  s.invariants = static_cast<int>(node.operands.size()) - s.carries - s.sequences;
  s.outputs = static_cast<int>(node.types.size()) - s.carries;
  s.length = node.attributes.shape("length")[0];
  s.reverse = !s.conditional && node.attributes.flag("reverse");
  return s;
}

Value add_scan(Graph& graph, const ScanOperands& operands, std::shared_ptr<const Graph> body) {
  static const Operator &scan = get_operator("scan"), &while_loop = get_operator("while_loop");
  std::vector<Value> all = operands.carries;
  all.insert(all.end(), operands.sequences.begin(), operands.sequences.end());
  all.insert(all.end(), operands.invariants.begin(), operands.invariants.end());
  Attributes attributes{{"carries", static_cast<int64_t>(operands.carries.size())},
                        {"length", Shape{operands.length}}};
  if (operands.conditional) {
    MILLRACE_CHECK(operands.sequences.empty() && !operands.reverse, "a while_loop has no sequences");
    return graph.add_with_body(while_loop, std::move(all), std::move(attributes), std::move(body));
  }
  attributes.set("sequences", static_cast<int64_t>(operands.sequences.size()));
  attributes.set("reverse", operands.reverse);
  return graph.add_with_body(scan, std::move(all), std::move(attributes), std::move(body));
}

std::vector<Type> loop_types(const TypeContext& c, int64_t carries, int64_t sequences) {
  if (!c.body) c.error("a body is needed");
  const Graph& body = *c.body;
  const auto operands = static_cast<int64_t>(c.operands.size()),
             outputs = static_cast<int64_t>(body.outputs().size());
  if (carries > operands || sequences > operands - carries)
    c.error(fmt::format("{} carries and {} sequences among {} operands", carries, sequences, operands));
  if (static_cast<int64_t>(body.inputs().size()) != operands)
    c.error(fmt::format("the body takes {} inputs", body.inputs().size()));
  if (outputs < carries) c.error(fmt::format("the body gives {} results for {} carries", outputs, carries));
  const Shape& length = c.attributes.shape("length");
  if (length.rank() != 1) c.error("length needs to be one dimension");
  if (outputs == 0) c.error("the body gives nothing");
  for (int64_t k = 0; k < operands; ++k) {
    const Type& operand = c.operands[k];
    const Type& input = body.type(body.inputs()[k]);
    if (k >= carries && k < carries + sequences) {
      if (operand.shape.rank() < 1 || !(operand.shape[0] == length[0]))
        c.error(
            fmt::format("sequence {} has no leading dimension of {} steps", k - carries, length[0].str()));
      const Type slice{operand.dtype, Shape(operand.shape.begin() + 1, operand.shape.end())};
      if (slice != input)
        c.error(fmt::format("the body takes slices of {} from sequence {}", input.str(), k - carries));
    } else if (operand != input) {
      c.error(fmt::format("the body takes {} as operand {}", input.str(), k));
    }
  }
  std::vector<Type> types;
  for (int64_t r = 0; r < outputs; ++r) {
    Type type = body.type(body.outputs()[r]);
    if (r < carries && type != c.operands[r])
      c.error(fmt::format("carry {} becomes {} in the body", r, type.str()));
    if (r >= carries) type.shape.insert(type.shape.begin(), length[0]);
    types.push_back(std::move(type));
  }
  return types;
}

double loop_flops(const Graph&, const Node& node) {
  return flops(*node.body) * static_cast<double>(scan_of(node).length.size());
}

}  // namespace millrace::ops

namespace {

std::vector<Value> inputs_of(Graph& graph, std::span<const Type> operands, int64_t carries,
                             int64_t sequences) {
  std::vector<Type> types(operands.begin(), operands.end());
  for (int64_t k = carries; k < carries + sequences; ++k) types[k].shape.erase(types[k].shape.begin());
  return ops::add_inputs(graph, types);
}

/// h' = tanh(h·U + x·W + b); gives h'.
Graph elman_cell(std::span<const Type> operands) {
  Graph graph;
  ops::Build b(graph);
  const std::vector<Value> in = inputs_of(graph, operands, 1, 1);
  const Value h =
      b.unary("tanh", b.add(b.add(b.matmul(in[0], in[2]), b.matmul(in[1], in[3], false, true)), in[4]));
  graph.set_outputs({h, h});
  return graph;
}

/// Sums and their squares, without anything fixed.
Graph running_sum(std::span<const Type> operands) {
  Graph graph;
  ops::Build b(graph);
  const std::vector<Value> in = inputs_of(graph, operands, 1, 1);
  const Value sum = b.add(in[0], in[1]);
  graph.set_outputs({sum, b.mul(sum, in[1]), in[0]});
  return graph;
}

/// Two carries that change places, one of integers that counts.
Graph exchange(std::span<const Type> operands) {
  Graph graph;
  ops::Build b(graph);
  const std::vector<Value> in = inputs_of(graph, operands, 3, 0);
  const Value count = b.add(in[2], 1);
  graph.set_outputs({in[1], b.unary("sin", b.add(in[0], in[3])), count,
                     b.mul(in[0], b.cast(b.broadcast(in[2], b.shape(in[0])), b.dtype(in[0])))});
  return graph;
}

/// Nothing is carried.
Graph pointwise(std::span<const Type> operands) {
  Graph graph;
  ops::Build b(graph);
  const std::vector<Value> in = inputs_of(graph, operands, 0, 1);
  graph.set_outputs({b.sum(b.mul(in[0], in[1]), {0}, false)});
  return graph;
}

std::vector<Sample> scan_samples() {
  std::vector<Sample> samples;
  const auto attributes = [](int64_t carries, int64_t sequences, int64_t length, bool reverse) {
    return Attributes{
        {"carries", carries}, {"sequences", sequences}, {"length", Shape{length}}, {"reverse", reverse}};
  };
  for (const int64_t length : {3, 1, 0})
    for (const bool reverse : {false, true})
      samples.push_back(
          {.operands = {{f32, {2, 3}}, {f32, {length, 2, 4}}, {f32, {3, 3}}, {f32, {3, 4}}, {f32, {3}}},
           .attributes = attributes(1, 1, length, reverse),
           .low = -1,
           .high = 1,
           .note = "Elman",
           .body = elman_cell});
  samples.push_back(
      {.operands = {{f32, {33, 5}}, {f32, {7, 33, 6}}, {f32, {5, 5}}, {f32, {5, 6}}, {f32, {5}}},
       .attributes = attributes(1, 1, 7, false),
       .low = -1,
       .high = 1,
       .note = "Elman",
       .body = elman_cell});
  for (const DType dtype : {f32, f64, i32, i64})
    samples.push_back({.operands = {{dtype, {5}}, {dtype, {4, 5}}},
                       .attributes = attributes(1, 1, 4, dtype == f64),
                       .note = "sums",
                       .body = running_sum});
  samples.push_back({.operands = {{f32, {}}, {f32, {9}}},
                     .attributes = attributes(1, 1, 9, false),
                     .note = "sums",
                     .body = running_sum});
  samples.push_back({.operands = {{f32, {2, 3}}, {f32, {2, 3}}, {i64, {}}, {f32, {2, 3}}},
                     .attributes = attributes(3, 0, 4, false),
                     .note = "exchange",
                     .body = exchange});
  samples.push_back({.operands = {{f32, {4, 3, 2}}, {f32, {2}}},
                     .attributes = attributes(0, 1, 4, false),
                     .note = "pointwise",
                     .body = pointwise});
  return samples;
}

}  // namespace

MILLRACE_OPERATOR(scan) {
  Operator op;
  op.name = "scan";
  op.op_class = OpClass::loop;
  op.doc =
      "Runs the body once for each of `length` steps. Operands: carries (values from step to step, with "
      "their "
      "first values), sequences (the body sees the slice of its step along dimension 0), and invariants (the "
      "same in every step); the body takes them in this order and gives the next carries, then what is "
      "stacked "
      "along a new dimension 0. Results: the last carries, then the stacks. `reverse` runs from the last "
      "position to the first; slices and stacks keep their positions.";
  op.min_operands = 0;
  op.max_operands = -1;
  op.attributes = {
      {"carries", AttributeType::integer, "how many operands are carries", {.low = 0}},
      {"sequences", AttributeType::integer, "how many operands after them are sequences", {.low = 0}},
      {"length", AttributeType::shape, "the number of steps: a shape of one dimension"},
      {"reverse", Attribute(false), "from the last position to the first"}};
  op.types = [](const TypeContext& c) {
    return ops::loop_types(c, c.attributes.integer("carries"), c.attributes.integer("sequences"));
  };
  op.flops = ops::loop_flops;
  op.tolerance = {.f32 = 1e-4, .f64 = 1e-11, .half = 3e-2};
  op.samples = scan_samples();
  op.repeat = Repeat::never;
  op.onnx = {"Scan"};
  return op;
}
