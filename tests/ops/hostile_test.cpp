// Type rules are what stands between a graph that somebody else wrote and the machine: whatever the
// attributes and shapes, they take a node or refuse it, and never compute with what overflowed.
#include <doctest/doctest.h>
#include <limits>

#include <millrace/error.h>
#include <millrace/operator.h>

#include "ir/operators.h"
#include "support/allocations.h"
#include "support/samples.h"

using namespace millrace;

namespace {

constexpr int64_t huge = std::numeric_limits<int64_t>::max(), widest = (int64_t{1} << 40) - 1;

struct Counts {
  int taken = 0, refused = 0;
};

/// Adds the node of the sample, which may be anything; what is taken has types that values can have.
void try_node(const Operator& op, const Sample& sample, Counts& counts) {
  Graph graph;
  std::vector<Value> operands;
  for (const Type& type : sample.operands)
    if (type.fault().empty()) operands.push_back(graph.input("x", type));
  const bool faulty = operands.size() != sample.operands.size();
  std::string fault;
  try {
    if (!faulty) {
      const Value result = graph.add(op, operands, sample.attributes);
      for (const Type& type : graph.node(result).types) fault += type.fault();
      ++counts.taken;
    }
  } catch (const TypeError&) {
    ++counts.refused;
  } catch (const InputError&) {
    ++counts.refused;
  } catch (const std::exception& error) {
    fault = error.what();
  }
  CHECK_MESSAGE(fault.empty(), describe(op, sample));
}

std::vector<Attribute> absurd(const Attribute& given) {
  std::vector<Attribute> list;
  if (std::holds_alternative<int64_t>(given))
    for (const int64_t value : {-huge - 1, -huge, -widest, int64_t{-1}, int64_t{0}, int64_t{3},
                                int64_t{1} << 31, widest, huge - 1, huge})
      list.emplace_back(value);
  if (const auto* ints = std::get_if<std::vector<int64_t>>(&given)) {
    list.emplace_back(std::vector<int64_t>{});
    list.emplace_back(std::vector<int64_t>(ints->size() + 1, 1));
    list.emplace_back(std::vector<int64_t>(1000, 1));
    for (const int64_t value :
         {-huge - 1, int64_t{-1}, int64_t{0}, int64_t{3}, int64_t{1} << 31, widest, huge}) {
      list.emplace_back(std::vector<int64_t>(ints->size(), value));
      for (size_t i = 0; i < ints->size(); ++i) {
        std::vector<int64_t> changed = *ints;
        changed[i] = value;
        list.emplace_back(changed);
      }
    }
  }
  if (const auto* shape = std::get_if<Shape>(&given)) {
    for (const Dim& dim : {Dim(0), Dim(1), Dim(widest), Dim(huge), Dim(-1), Dim::named("batch")}) {
      list.emplace_back(Shape(shape->size(), dim));
      list.emplace_back(Shape{dim, dim, dim});
      for (size_t i = 0; i < shape->size(); ++i) {
        Shape changed = *shape;
        changed[i] = dim;
        list.emplace_back(changed);
      }
    }
    list.emplace_back(Shape{});
    list.emplace_back(Shape{widest, 0});
  }
  if (std::holds_alternative<double>(given))
    for (const double value : {-1.0, 0.0, 2.0, 1e308, -std::numeric_limits<double>::infinity(),
                               std::numeric_limits<double>::quiet_NaN()})
      list.emplace_back(value);
  if (std::holds_alternative<DType>(given))
    for (const DType dtype : all_dtypes()) list.emplace_back(dtype);
  if (std::holds_alternative<DType>(given)) list.emplace_back(DType{Kind::floating, 7});
  // And every other kind.
  const std::vector<Attribute> kinds = {
      true, int64_t{1}, 1.0, std::string("x"), std::vector<int64_t>{1}, f32, Shape{1}, Array(f32, {1})};
  for (const Attribute& other : kinds)
    if (other.index() != given.index()) list.push_back(other);
  return list;
}

std::vector<Type> absurd(const Type& given) {
  std::vector<Type> list;
  for (const DType dtype : all_dtypes()) list.push_back({dtype, given.shape});
  list.push_back({given.dtype, {}});
  list.push_back({given.dtype, {0}});
  list.push_back({given.dtype, {widest}});
  list.push_back({given.dtype, Shape(12, Dim(3))});
  for (const Dim& dim :
       {Dim(0), Dim(1), Dim(4), Dim(widest), Dim::named("batch"), Dim(7) * Dim::named("batch")}) {
    list.push_back({given.dtype, Shape(given.shape.size(), dim)});
    for (size_t d = 0; d < given.shape.size(); ++d) {
      list.push_back(given);
      list.back().shape[d] = dim;
      list.push_back(list.back());  // an empty shape of any sizes is a type
      list.back().shape.push_back(0);
    }
  }
  return list;
}

}  // namespace

TEST_CASE("absurd attributes and shapes are refused by type rules, or taken whole") {
  Counts counts;
  for (const Operator* op : library_operators()) {
    if (!op->types || op->runs_body()) continue;
    std::string last;
    for (const Sample& sample : op->samples) {
      if (sample.body) continue;
      // Of samples that differ in dtype only, one.
      std::string form;
      for (const Type& type : sample.operands) form += type.shape.str();
      if (form == last) continue;
      last = form;
      Attributes complete = sample.attributes;
      complete_attributes(*op, complete, {});
      for (const auto& [name, given] : complete.items())
        for (Attribute& value : absurd(given)) {
          Sample changed = sample;
          changed.attributes.set(name, std::move(value));
          try_node(*op, changed, counts);
        }
      for (size_t k = 0; k < sample.operands.size(); ++k)
        for (Type& type : absurd(sample.operands[k])) {
          Sample changed = sample;
          changed.operands[k] = type;
          try_node(*op, changed, counts);
          for (Type& each : changed.operands) each = type;
          try_node(*op, changed, counts);
        }
      Sample changed = sample;
      changed.operands.clear();
      try_node(*op, changed, counts);
      for (int i = 0; i < 100; ++i) changed.operands.push_back({f32, {2}});
      try_node(*op, changed, counts);
    }
  }
  CHECK(counts.taken > 10000);
  CHECK(counts.refused > 10000);
}
