// From a group of operators to a loop nest: every result is expanded at symbolic positions, recursively.
#include <map>
#include <numeric>
#include <tuple>

#include <millrace/narrow_types.h>

#include "backend/cpu/codegen/nest.h"
#include "base/format.h"
#include "ir/alone.h"
#include "ir/scalar_ops.h"
#include "ir/values.h"
#include "ops/axis.h"

namespace millrace::codegen {
namespace {

/// A dimension that joins or padding cut into equal parts. The nest runs over one part and computes all of
/// them at each point, so that every part's conditions are known when it is compiled.
struct Parts {
  int dim = -1;
  int64_t size = 0, count = 1;
};

/// Where along dimension `dim` a node's result changes from one operand to another: the greatest length that
/// divides all such positions; 0 when there are none.
int64_t part_length(const Graph& body, const Node& node, int dim) {
  if (!node.op->seams) return 0;
  const std::vector<Type> operands = types_of(body, node.operands);
  int64_t length = 0;
  for (const int64_t seam : node.op->seams({node, operands}, dim)) length = std::gcd(length, seam);
  return length;
}

Parts choose_parts(const Graph& body, const std::vector<int64_t>& sizes) {
  constexpr int64_t most_parts = 8, most_stores = 32, least_lanes = 16;
  const Shape space(sizes);
  for (const millrace::Value& output : body.outputs())
    if (body.node(output).op->op_class == OpClass::reduction) return {};
  for (int dim = static_cast<int>(sizes.size()) - 1; dim >= 0; --dim) {
    int64_t length = 0;
    for (int i = 0; i < body.size(); ++i)
      if (body.node(i).types[0].shape == space)
        length = std::gcd(length, part_length(body, body.node(i), dim));
    if (length == 0) continue;
    length = std::gcd(length, sizes[dim]);
    const int64_t count = sizes[dim] / length;
    const bool last = dim + 1 == static_cast<int>(sizes.size());
    if (count >= 2 && count <= most_parts &&
        count * static_cast<int64_t>(body.outputs().size()) <= most_stores &&
        (!last || length >= least_lanes))
      return {dim, length, count};
  }
  return {};
}

/// Builds scalar and element bodies as expressions. A scalar remembers its graph dtype: 16-bit floats are
/// computed in f32.
class Lowering : public ElementBuilder {
 public:
  Lowering(const Graph& body, const KernelRequest& request, Group& group, const Parts& parts)
      : body_(body), request_(request), group_(group), dag_(group.nest.dag), parts_(parts) {}

  void run();

  Scalar constant(DType dtype, double value) override { return make(dag_.constant(dtype, value), dtype); }
  Scalar integer(DType dtype, int64_t value) override { return make(dag_.integer(dtype, value), dtype); }
  Scalar unary(ScalarOp op, Scalar a) override;
  Scalar binary(ScalarOp op, Scalar a, Scalar b) override;
  Scalar select(Scalar condition, Scalar if_true, Scalar if_false) override {
    return make(dag_.select(expr(condition), expr(if_true), expr(if_false)), dtype(if_true));
  }
  Scalar cast(Scalar a, DType to) override { return make(dag_.cast(expr(a), to), to); }
  Scalar bitcast(Scalar a, DType to) override { return make(dag_.bitcast(expr(a), dtype(a), to), to); }
  DType dtype(Scalar a) const override { return scalars_[a.id].second; }
  Scalar load(int operand, std::span<const Scalar> index) override;
  Scalar load_if(Scalar condition, int operand, std::span<const Scalar> index, Scalar otherwise) override;

 private:
  /// What element bodies load from: the operands of this node, under this predicate.
  struct Frame {
    const Node* node = nullptr;
    int predicate = -1;
  };
  using Key = std::tuple<millrace::Value, std::vector<int>, int>;

  Scalar make(int id, DType dtype) {
    scalars_.emplace_back(id, dtype);
    return {static_cast<int>(scalars_.size()) - 1};
  }
  int expr(Scalar a) const { return scalars_[a.id].first; }
  int both(int a, int b) { return a < 0 ? b : b < 0 ? a : dag_.binary(ScalarOp::logical_and, a, b); }

  int expand(millrace::Value value, const std::vector<int>& index, int predicate);
  int compute(millrace::Value value, const std::vector<int>& index, int predicate);
  int constant_element(const Array& array, const std::vector<int>& index, int predicate);
  std::vector<int> reshaped(const Shape& from, const Shape& to, const std::vector<int>& index);
  int offset(const Shape& shape, const Layout& layout, const std::vector<int>& index);
  void reduce(const Node& node, int result);
  void store(millrace::Value value, int result);

  const Graph& body_;
  const KernelRequest& request_;
  Group& group_;
  Dag& dag_;
  const Parts parts_;
  std::vector<std::pair<int, DType>> scalars_;
  std::map<Key, int> known_;
  std::map<int, int> input_index_;
  std::vector<int> index_;  // of the iteration space
  Frame frame_;
};

Scalar Lowering::unary(ScalarOp op, Scalar a) {
  const DType type = result_dtype(op, dtype(a));
  switch (op) {
    case ScalarOp::exp:
    case ScalarOp::log:
    case ScalarOp::sin:
    case ScalarOp::cos:
    case ScalarOp::tanh:
    case ScalarOp::erf:
    case ScalarOp::sigmoid:
      return make(elementary(dag_, op, expr(a)), type);
    default:
      return make(dag_.unary(op, expr(a)), type);
  }
}

Scalar Lowering::binary(ScalarOp op, Scalar a, Scalar b) {
  const bool elementary = op == ScalarOp::pow || (op == ScalarOp::rem && dtype(a).is_float());
  const int id =
      elementary ? elementary_binary(dag_, op, expr(a), expr(b)) : dag_.binary(op, expr(a), expr(b));
  return make(id, result_dtype(op, dtype(a)));
}

Scalar Lowering::load(int operand, std::span<const Scalar> index) {
  std::vector<int> at;
  for (const Scalar& i : index) at.push_back(expr(i));
  const millrace::Value value = frame_.node->operands[operand];
  return make(expand(value, at, frame_.predicate), body_.type(value).dtype);
}

Scalar Lowering::load_if(Scalar condition, int operand, std::span<const Scalar> index, Scalar otherwise) {
  const int test = expr(condition);
  if (dag_.is_false(test)) return otherwise;
  std::vector<int> at;
  for (const Scalar& i : index) at.push_back(expr(i));
  const millrace::Value value = frame_.node->operands[operand];
  const int predicate = both(frame_.predicate, test);
  const int id = expand(value, at, predicate);
  const Expr &loaded = dag_[id], &other = dag_[expr(otherwise)];
  // A load gives 0 where its predicate is false: no select is needed then.
  const bool zero = other.kind == ExprKind::constant && other.bits == 0 && frame_.predicate < 0 &&
                    loaded.kind == ExprKind::load && loaded.args.size() > 1 && loaded.args[1] == predicate;
  return make(zero ? id : dag_.select(test, id, expr(otherwise)), body_.type(value).dtype);
}

int Lowering::expand(millrace::Value value, const std::vector<int>& index, int predicate) {
  const Key key{value, index, predicate};
  if (const auto at = known_.find(key); at != known_.end()) return at->second;
  const int id = compute(value, index, predicate);
  known_.emplace(key, id);
  return id;
}

int Lowering::compute(millrace::Value value, const std::vector<int>& index, int predicate) {
  const Node& node = body_.node(value);
  if (const auto at = input_index_.find(value.node); at != input_index_.end()) {
    const Type& type = body_.type(value);
    return dag_.load(at->second, type.dtype, offset(type.shape, request_.operand_layouts[at->second], index),
                     predicate);
  }
  if (const Array* array = body_.constant_value(value)) return constant_element(*array, index, predicate);
  if (node.op->op_class == OpClass::view)
    return expand(node.operands[0], reshaped(body_.type(node.operands[0]).shape, node.types[0].shape, index),
                  predicate);
  if (node.op->op_class == OpClass::elementwise) {
    std::vector<Scalar> operands;
    for (const millrace::Value& operand : node.operands)
      operands.push_back(make(expand(operand, index, predicate), body_.type(operand).dtype));
    return expr(node.op->scalar(*this, operands, node));
  }
  const std::vector<Type> types = types_of(body_, node.operands);
  std::vector<Scalar> at;
  for (const int i : index) at.push_back(make(i, i64));
  const Frame outer = frame_;
  frame_ = {&node, predicate};
  const int id = expr(node.op->element(*this, at, ElementContext{node, types}));
  frame_ = outer;
  return id;
}

int Lowering::offset(const Shape& shape, const Layout& layout, const std::vector<int>& index) {
  const std::vector<int64_t> strides = strides_of(shape, layout);
  int sum = dag_.integer(i64, 0);
  for (int d = 0; d < shape.rank(); ++d)
    if (shape[d].size() != 1)
      sum = dag_.binary(ScalarOp::add, sum,
                        dag_.binary(ScalarOp::mul, index[d], dag_.integer(i64, strides[d])));
  return sum;
}

int Lowering::constant_element(const Array& array, const std::vector<int>& index, int predicate) {
  if (array.count() == 1)
    return is_real(array.dtype()) ? dag_.constant(array.dtype(), array.at(0))
                                  : dag_.integer(array.dtype(), array.int_at(0));
  // Not a scalar: one more buffer, which the kernel keeps.
  const int first = static_cast<int>(request_.node.operands.size() + request_.node.types.size());
  int at = -1;
  for (size_t i = 0; i < group_.constants.size(); ++i)
    if (group_.constants[i].data() == array.data()) at = static_cast<int>(i);
  if (at < 0) {
    at = static_cast<int>(group_.constants.size());
    group_.constants.push_back(array);
  }
  return dag_.load(first + at, array.dtype(), offset(array.type().shape, {}, index), predicate);
}

/// The index in `from` of the element that stands at `index` in `to`.
std::vector<int> Lowering::reshaped(const Shape& from, const Shape& to, const std::vector<int>& index) {
  const int flat = offset(to, {}, index);
  const std::vector<int64_t> strides = strides_of(from, {});
  std::vector<int> at;
  for (int d = 0; d < from.rank(); ++d) {
    int i = dag_.binary(ScalarOp::div, flat, dag_.integer(i64, std::max<int64_t>(strides[d], 1)));
    if (d > 0) i = dag_.binary(ScalarOp::rem, i, dag_.integer(i64, std::max<int64_t>(from[d].size(), 1)));
    at.push_back(i);
  }
  return at;
}

void Lowering::reduce(const Node& node, int result) {
  const Shape& shape = body_.type(node.operands[0]).shape;
  const bool keep = node.attributes.flag("keep_dims");
  Reduce r;
  r.kind = *node.op->reduction;
  r.value = expand(node.operands[0], index_, -1);
  // Without keep_dims the result has only the kept dimensions.
  const Type& type = node.types[0];
  const std::vector<int64_t>& axes = node.attributes.ints("axes");
  std::vector<bool> is_reduced(shape.rank(), axes.empty());
  for (const int64_t axis : axes) is_reduced[ops::from_front(axis, shape.rank())] = true;
  std::vector<int> at;
  for (int d = 0; d < shape.rank(); ++d) {
    if (!is_reduced[d]) at.push_back(index_[d]);
    if (is_reduced[d] && keep) at.push_back(dag_.integer(i64, 0));
    if (is_reduced[d]) {
      group_.nest.reduced[d] = true;
      r.divisor *= shape[d].size();
      if (r.kind == Reduction::argmax || r.kind == Reduction::argmin) r.position = index_[d];
    }
  }
  r.offset = offset(type.shape, request_.result_layouts[result], at);
  r.buffer = static_cast<int>(request_.node.operands.size()) + result;
  r.memory = type.dtype;
  group_.nest.reduces.push_back(r);
}

void Lowering::run() {
  for (size_t i = 0; i < body_.inputs().size(); ++i)
    input_index_[body_.inputs()[i].node] = static_cast<int>(i);
  for (int d = 0; d < static_cast<int>(dag_.sizes().size()); ++d) index_.push_back(dag_.dim(d));
  for (size_t i = 0; i < body_.outputs().size(); ++i) {
    const millrace::Value value = body_.outputs()[i];
    const Node& node = body_.node(value);
    const int result = static_cast<int>(i);
    const bool reduces = node.op->op_class == OpClass::reduction;
    std::vector<int64_t> sizes = (reduces ? body_.type(node.operands[0]) : body_.type(value)).shape.sizes();
    if (parts_.dim >= 0) sizes[parts_.dim] /= parts_.count;
    MILLRACE_CHECK(sizes == dag_.sizes(), "result {} of a fused group does not run over [{}]", i,
                   fmt::join(dag_.sizes(), ", "));
    if (reduces)
      reduce(node, result);
    else
      store(value, result);
  }
}

void Lowering::store(millrace::Value value, int result) {
  const Type& type = body_.type(value);
  const std::vector<int> whole = index_;
  for (int64_t part = 0; part < parts_.count; ++part) {
    if (parts_.dim >= 0)
      index_[parts_.dim] =
          dag_.binary(ScalarOp::add, whole[parts_.dim], dag_.integer(i64, part * parts_.size));
    group_.nest.stores.push_back({static_cast<int>(request_.node.operands.size()) + result, type.dtype,
                                  offset(type.shape, request_.result_layouts[result], index_),
                                  expand(value, index_, -1)});
  }
  index_ = whole;
}

std::optional<std::string> why_not_node(const Node& node) {
  switch (node.op->op_class) {
    case OpClass::elementwise:
      if (!node.op->scalar) return fmt::format("{} has no scalar body", node.op->name);
      return std::nullopt;
    case OpClass::movement:
    case OpClass::generator:
      if (!node.op->element) return fmt::format("{} has no element body", node.op->name);
      return std::nullopt;
    case OpClass::reduction:
    case OpClass::view:
    case OpClass::input:
    case OpClass::constant:
      return std::nullopt;
    default:
      return fmt::format("{} is not an element-wise, movement or reduction operator", node.op->name);
  }
}

}  // namespace

const Shape& space_of(const Graph& graph, const Node& node, int result) {
  if (node.op->op_class == OpClass::group) {
    const millrace::Value first = node.body->outputs()[0];
    return space_of(*node.body, node.body->node(first), first.output);
  }
  return node.op->op_class == OpClass::reduction ? graph.type(node.operands[0]).shape
                                                 : node.types[result].shape;
}

std::optional<std::string> why_not_lower(const Node& node) {
  if (node.op->op_class != OpClass::group) {
    if (node.op->is_given()) return "inputs and constants need no kernel";
    return why_not_node(node);
  }
  for (int i = 0; i < node.body->size(); ++i)
    if (auto why = why_not_node(node.body->node(i))) return why;
  return std::nullopt;
}

std::shared_ptr<const Graph> body_of(const Graph& graph, const Node& node) {
  if (node.op->op_class == OpClass::group) return node.body;
  return std::make_shared<const Graph>(alone(graph, node));
}

Group lower(const KernelRequest& request) {
  const std::shared_ptr<const Graph> body = body_of(request.graph, request.node);
  Group group;
  std::vector<int64_t> sizes = space_of(request.graph, request.node).sizes();
  const Parts parts = choose_parts(*body, sizes);
  if (parts.dim >= 0) sizes[parts.dim] = parts.size;
  group.nest.dag = Dag(sizes);
  group.nest.reduced.assign(sizes.size(), false);
  Lowering(*body, request, group, parts).run();
  return group;
}

}  // namespace millrace::codegen
