#include "onnx/models/open_sizes.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

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

  /// Constants of sizes that are open hold one number.
  Value merged(const Array& one, const Array& other, int index) {
    Graph& graph = map_.graph();
    if (one.type() == other.type()) {
      if (one.bytes() != 0 && std::memcmp(one.data(), other.data(), one.bytes()) != 0) depends(index);
      return graph.constant(one);
    }
    if (one.dtype() != other.dtype() || one.count() == 0 || other.count() == 0) depends(index);
    for (const Array* each : {&one, &other})
      for (int64_t i = 0; i < each->count(); ++i)
        if (!(each->at(i) == one.at(0))) depends(index);
    const Shape shape = merged(one.shape(), other.shape(), index);
    return ops::Build(graph).broadcast(graph.scalar(one.dtype(), one.at(0)), shape);
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
