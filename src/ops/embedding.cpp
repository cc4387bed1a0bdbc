#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(embedding) {
  Operator op;
  op.name = "embedding";
  op.op_class = OpClass::composite;
  op.doc = "Rows of a table [rows, width] picked by ids of any shape; zeros for an id that is no row.";
  op.min_operands = op.max_operands = 2;
  op.types = [](const TypeContext& c) {
    const Type &table = c.operands[0], &ids = c.operands[1];
    if (table.shape.rank() != 2) c.error("the table must have the dimensions [rows, width]");
    if (!table.dtype.is_float()) c.error("dtype is not supported");
    if (ids.dtype != i64 && ids.dtype != i32) c.error("the ids must be i64 or i32");
    Type result{table.dtype, ids.shape};
    result.shape.push_back(table.shape[1]);
    return std::vector<Type>{result};
  };
  op.body = [](Graph& graph, std::span<const Value> operands, const Attributes&) {
    return std::vector<Value>{graph.add("gather", {operands[0], operands[1]}, {{"axis", int64_t{0}}})};
  };
  op.samples = {
      {.operands = {{f32, {6, 5}}, {i64, {3, 4}}}}, {.operands = {{f32, {6, 33}}, {i32, {7}}}},
      {.operands = {{f32, {6, 5}}, {i64, {}}}},     {.operands = {{f32, {6, 5}}, {i64, {0}}}},
      {.operands = {{f64, {6, 2}}, {i64, {9}}}},    {.operands = {{bf16, {6, 8}}, {i64, {5}}}},
      {.operands = {{f16, {6, 8}}, {i64, {5}}}},    {.operands = {{f32, {1, 1}}, {i64, {1}}}, .int_high = 0}};
  op.onnx = {"Gather"};
  return op;
}
