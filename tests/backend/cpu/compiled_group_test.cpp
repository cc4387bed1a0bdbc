// Kernels of equal groups share their code, and of no others.
#include "backend/cpu/codegen/compiled_group.h"

#include <doctest/doctest.h>
#include <functional>
#include <set>

#include <millrace/operator.h>

#include "backend/ref/evaluate.h"
#include "support/codegen_support.h"

using namespace millrace;

namespace {

/// What a body is made of and where its operands lie.
struct Variant {
  const char* op = "mul";
  double factor = 2;
  Type type = {f32, {6, 20}};
  Array table = {};  // added where there is one
  std::vector<int64_t> axes = {};
  bool plain = false;   // without anything but the difference
  bool turned = false;  // outputs stand the other way round
  Layout operand = {}, result = {};
};

Graph body_of(const Variant& v) {
  Graph body;
  const Value x = body.input("x", v.type), y = body.input("y", v.type);
  if (v.plain) {
    body.set_outputs({body.add("sub", {x, y})});
    return body;
  }
  const auto spread = [&](Value value) { return body.add("broadcast", {value}, {{"shape", v.type.shape}}); };
  Value first = body.add(v.op, {x, spread(body.scalar(v.type.dtype, v.factor))});
  if (!v.table.empty()) first = body.add("add", {first, body.constant(v.table)});
  Value second = body.add("sub", {x, y});
  if (!v.axes.empty()) {
    first = body.add("sum", {first}, {{"axes", v.axes}, {"keep_dims", true}});
    second = body.add("sum", {second}, {{"axes", v.axes}, {"keep_dims", true}});
  }
  body.set_outputs(v.turned ? std::vector<Value>{second, first} : std::vector<Value>{first, second});
  return body;
}

std::shared_ptr<const codegen::CompiledGroup> group_of(const Variant& v) {
  const Graph body = body_of(v);
  Graph graph;
  const Value fused =
      graph.add_with_body(get_operator("fused"), {graph.input("a", v.type), graph.input("b", v.type)}, {},
                          std::make_shared<Graph>(body));
  KernelRequest request{graph, graph.node(fused), {v.operand, {}}, {v.result, {}}};
  request.result_layouts.resize(body.outputs().size());
  return codegen::compiled_group(request);
}

Array table(double first) {
  Array array(f32, {6, 20});
  for (int64_t i = 0; i < array.count(); ++i)
    array.as<float>()[static_cast<size_t>(i)] = static_cast<float>(first + i);
  return array;
}

std::vector<Variant> variants() {
  std::vector<Variant> all(10);
  all[1].op = "add";
  all[2].factor = 3;
  all[3].type = {f32, {20, 6}};
  all[4].type = {f64, {6, 20}};
  all[5].turned = true;
  all[6].operand = {1, 0};
  all[7].result = {1, 0};
  all[8].axes = {1};
  all[9].operand = {0, 1};
  all.push_back(all[8]);
  all.back().axes = {0};
  for (const Type& type : {Type{f32, {6, 20}}, Type{f32, {20, 6}}, Type{f64, {6, 20}}}) {
    all.emplace_back();
    all.back().plain = true;
    all.back().type = type;
  }
  for (const double first : {1.0, 2.0}) {
    all.emplace_back();
    all.back().table = table(first);
  }
  return all;
}

}  // namespace

TEST_CASE("groups that differ in anything are compiled apart, and computed as they should be") {
  const std::vector<Variant> all = variants();
  std::vector<std::shared_ptr<const codegen::CompiledGroup>> groups;
  for (const Variant& v : all) groups.push_back(group_of(v));
  CHECK(std::set(groups.begin(), groups.end()).size() == all.size());
  // While all of them are there.
  for (size_t i = 0; i < all.size(); ++i) {
    CAPTURE(i);
    CHECK(group_of(all[i]) == groups[i]);
    const Graph body = body_of(all[i]);
    const std::vector<Array> inputs = {random_array(all[i].type, 1), random_array(all[i].type, 2)};
    const std::vector<Array> is = run_fused(body, inputs, {2, {all[i].operand, {}}, {all[i].result, {}}}),
                             should = ref::evaluate(body, inputs);
    for (size_t o = 0; o < is.size(); ++o)
      for (int64_t e = 0; e < is[o].count(); ++e)
        CHECK(is[o].at(e) == doctest::Approx(should[o].at(e)).epsilon(1e-4));
  }
}

TEST_CASE("a group is forgotten with the last kernel that has it") {
  std::weak_ptr<const codegen::CompiledGroup> last;
  {
    const auto first = group_of({.factor = 77}), second = group_of({.factor = 77});
    CHECK(first == second);
    last = first;
  }
  CHECK(last.expired());
}
