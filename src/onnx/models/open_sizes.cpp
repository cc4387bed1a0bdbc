#include "onnx/models/open_sizes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include <millrace/error.h>
#include <millrace/operator.h>

#include "base/format.h"
#include "ops/body.h"
#include "ops/build.h"

namespace millrace::onnx {
namespace {

/// What a dimension is called, and the two numbers that stand for it.
struct Open {
  std::string name;
  int64_t first, second;
};

/// Primes, so that a product shows what it is made of; the first ones for what is named first, the batch.
constexpr std::array<std::pair<int64_t, int64_t>, 4> stand_ins = {{{3, 5}, {37, 41}, {43, 47}, {53, 59}}};

std::vector<Open> open_dims(const ImportOptions& options) {
  std::vector<Open> open;
  for (size_t axis = 0; axis < 16; ++axis)
    for (const auto& [name, type] : options.inputs) {
      if (axis >= type.shape.size()) continue;
      for (const std::string& each : type.shape[axis].names()) {
        if (std::any_of(open.begin(), open.end(), [&](const Open& one) { return one.name == each; }))
          continue;
        if (open.size() == stand_ins.size())
          fail<InputError>("more than {} sizes of its inputs are open", stand_ins.size());
        const auto& [first, second] = stand_ins[open.size()];
        open.push_back({each, first, second});
      }
    }
  return open;
}

ImportOptions bound(ImportOptions options, const std::vector<Open>& open, bool second) {
  Bindings sizes;
  for (const Open& each : open) sizes[each.name] = second ? each.second : each.first;
  for (auto& [name, type] : options.inputs) type.shape = type.shape.specialise(sizes);
  return options;
}

/// One graph of two that were made by the same steps for different sizes.
class Merge {
 public:
  Merge(const Graph& a, const Graph& b, const std::vector<Open>& open) : a_(a), b_(b), open_(open), map_(a) {}

  Graph run() {
    if (a_.size() != b_.size() || a_.inputs().size() != b_.inputs().size())
      fail<InputError>("what is computed depends on {}", names());
    Graph& graph = map_.graph();
    for (size_t i = 0; i < a_.inputs().size(); ++i) {
      const Value input = a_.inputs()[i];
      Type type = a_.type(input);
      type.shape = merged(type.shape, b_.type(b_.inputs()[i]).shape, input.node);
      map_.set(input, graph.input(a_.input_names()[i], type));
    }
    // Sizes that were computed with stay behind as constants, which nobody reads.
    const std::vector<char> needed = ops::needed_by(a_, a_.outputs());
    for (int i = 0; i < a_.size(); ++i)
      if (needed[static_cast<size_t>(i)] && !map_.has({i, 0})) visit(i);
    return map_.finish();
  }

 private:
  void visit(int index) {
    const Node &one = a_.node(index), &other = b_.node(index);
    if (one.op != other.op || one.operands != other.operands || one.types.size() != other.types.size())
      depends(index);
    Graph& graph = map_.graph();
    graph.set_origin(one.origin);
    if (const Array* constant = a_.constant_value({index, 0})) {
      map_.set({index, 0}, merged(*constant, *b_.constant_value({index, 0}), index));
      return;
    }
    Attributes attributes = one.attributes;
    const auto& items = one.attributes.items();
    for (size_t k = 0; k < items.size(); ++k) {
      const auto& [name, value] = items[k];
      const Attribute& same = other.attributes.items()[k].second;
      if (const Shape* shape = std::get_if<Shape>(&value)) {
        attributes.set(name, merged(*shape, std::get<Shape>(same), index));
      } else if (const auto* ints = std::get_if<std::vector<int64_t>>(&value)) {
        std::vector<int64_t> whole = *ints;
        const auto& others = std::get<std::vector<int64_t>>(same);
        if (whole.size() != others.size()) depends(index);
        // The end of what is taken whole; the type of the result shows whether it is that.
        for (size_t d = 0; d < whole.size(); ++d)
          if (whole[d] != others[d]) whole[d] = std::numeric_limits<int64_t>::max();
        attributes.set(name, whole);
      } else if (!(Attributes({{name, value}}) == Attributes({{name, same}}))) {
        depends(index);
      }
    }
    const std::vector<Value> operands = map_.mapped(one.operands);
    Value added;
    try {
      if (one.op->takes_body())
        added =
            graph.add_with_body(*one.op, operands, std::move(attributes),
                                std::make_shared<const Graph>(Merge(*one.body, *other.body, open_).run()));
      else
        added = graph.add(*one.op, operands, std::move(attributes));
    } catch (const TypeError& error) {
      fail<InputError>("{}: it cannot be had for any {}: {}", one.origin.layer.str(), names(), error.what());
    }
    for (size_t r = 0; r < one.types.size(); ++r) {
      const Shape wanted = merged(one.types[r].shape, other.types[r].shape, index);
      if (graph.node(added).types[r].shape != wanted) depends(index);
    }
    map_.set_all(index, added);
  }

  Shape merged(const Shape& one, const Shape& other, int index) const {
    if (one.size() != other.size()) depends(index);
    Shape shape;
    for (size_t d = 0; d < one.size(); ++d) shape.push_back(merged(one[d].size(), other[d].size(), index));
    return shape;
  }

  /// The product of names that is the one number for the first choice and the other for the second.
  Dim merged(int64_t one, int64_t other, int index) const {
    if (one == other) return one;
    for (size_t set = 1; set < (size_t{1} << open_.size()); ++set) {
      int64_t first = 1, second = 1;
      Dim dim = 1;
      for (size_t k = 0; k < open_.size(); ++k) {
        if (!(set >> k & 1)) continue;
        first *= open_[k].first;
        second *= open_[k].second;
        dim = dim * Dim::named(open_[k].name);
      }
      if (one % first == 0 && other % second == 0 && one / first == other / second)
        return dim * (one / first);
    }
    depends(index);
  }

  /// Constants that differ are a size, or count along what is open.
  Value merged(const Array& one, const Array& other, int index) {
    Graph& graph = map_.graph();
    if (one.type() == other.type() && one.identical(other)) return graph.constant(one);
    if (one.dtype() != other.dtype() || one.count() == 0 || other.count() == 0) depends(index);
    if (one.type() == other.type()) return sizes_themselves(one, other, index);
    return counted(one, other, merged(one.shape(), other.shape(), index), index);
  }

  /// Whole numbers, of which some are sizes, as the number of ones along them: a graph has sizes in shapes
  /// alone.
  Value sizes_themselves(const Array& one, const Array& other, int index) {
    constexpr int64_t most = 16;
    if (one.count() > most || one.dtype().is_bool()) depends(index);
    const auto whole = [&](double number) {
      if (!(std::abs(number) < 1e15) || number != std::floor(number)) depends(index);
      return static_cast<int64_t>(number);
    };
    ops::Build b(map_.graph());
    std::vector<Value> numbers;
    for (int64_t i = 0; i < one.count(); ++i) {
      const Dim size = merged(whole(one.at(i)), whole(other.at(i)), index);
      const double each = size.is_static() ? static_cast<double>(size.size()) : 1;
      const Value ones = b.broadcast(b.scalar(one.dtype(), each), {size.is_static() ? Dim(1) : size});
      numbers.push_back(b.sum(ones, {0}, true));
    }
    return b.reshape(map_.graph().add("concat", numbers, {{"axis", int64_t{0}}}), one.shape());
  }

  /// Along each axis that is open the numbers grow by steps of one size (none, mostly), which may be another
  /// for each place along the others: 0, 1, 2 … of the rows of a batch.
  Value counted(const Array& one, const Array& other, const Shape& shape, int index) {
    Shape closed = shape;  // along the axes that are not open
    std::vector<int> open;
    for (int d = 0; d < shape.rank(); ++d)
      if (!shape[d].is_static()) {
        closed[d] = 1;
        open.push_back(d);
      }
    const Array first = beginning(one, closed, -1);
    std::map<int, Array> steps;
    for (const int d : open) {
      Array step = beginning(one, closed, d);
      double most = 0;
      for (int64_t i = 0; i < step.count(); ++i) {
        step.set(i, step.at(i) - first.at(i));
        most = std::max(most, std::abs(step.at(i)));
      }
      if (most > 0) steps.emplace(d, std::move(step));
    }
    if (one.dtype().is_bool() && !steps.empty()) depends(index);
    for (const Array* each : {&one, &other})
      for (int64_t i = 0; i < each->count(); ++i) {
        const std::vector<int64_t> place = place_of(each->shape(), i);
        const int64_t at = offset_of(closed, place);
        double number = first.at(at);
        for (const auto& [d, step] : steps) number += step.at(at) * static_cast<double>(place[d]);
        if (!(each->at(i) == number)) depends(index);
      }
    Graph& graph = map_.graph();
    ops::Build b(graph);
    Value sum = b.broadcast(graph.constant(first), shape);
    for (const auto& [d, step] : steps) {
      const Value count = graph.add(
          "iota", {}, {{"shape", shape}, {"axis", static_cast<int64_t>(d)}, {"dtype", one.dtype()}});
      sum = b.add(sum, b.mul(count, b.broadcast(graph.constant(step), shape)));
    }
    return sum;
  }

  /// What stands first along the axes of which `shape` has one place, or next to it along axis `next`.
  static Array beginning(const Array& all, const Shape& shape, int next) {
    Array begins(all.dtype(), shape);
    for (int64_t i = 0; i < begins.count(); ++i) {
      std::vector<int64_t> place = place_of(shape, i);
      if (next >= 0) place[next] = 1;
      begins.set(i, all.at(offset_of(all.shape(), place)));
    }
    return begins;
  }

  static std::vector<int64_t> place_of(const Shape& shape, int64_t at) {
    std::vector<int64_t> place(shape.size());
    for (size_t d = shape.size(); d-- > 0; at /= shape[d].size()) place[d] = at % shape[d].size();
    return place;
  }

  /// Of the one place along an axis, wherever it is.
  static int64_t offset_of(const Shape& shape, const std::vector<int64_t>& place) {
    int64_t at = 0;
    for (size_t d = 0; d < shape.size(); ++d) at = at * shape[d].size() + (shape[d] == 1 ? 0 : place[d]);
    return at;
  }

  std::string names() const {
    std::vector<std::string> all;
    for (const Open& each : open_) all.push_back(each.name);
    return fmt::format("{}", fmt::join(all, ", "));
  }

  [[noreturn]] void depends(int index) const {
    const Origin& place = a_.node(index).origin;
    fail<InputError>(
        "{}: what is computed there follows from {} in a way that a graph of any such size cannot say",
        place.empty() ? "a node" : "the node '" + place.layer.str() + "'", names());
  }

  const Graph &a_, &b_;
  const std::vector<Open>& open_;
  Rewriter map_;
};

}  // namespace

Imported import_open(const Model& model, const ImportOptions& options) {
  const std::vector<Open> open = open_dims(options);
  if (open.empty()) return import_model(model, options);
  Imported one = import_model(model, bound(options, open, false));
  const Imported other = import_model(model, bound(options, open, true));
  one.graph = Merge(one.graph, other.graph, open).run();
  one.outputs.clear();
  return one;
}

}  // namespace millrace::onnx
