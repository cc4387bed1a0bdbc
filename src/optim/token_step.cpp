// The graph of a step: a whole text's body on the new tokens of all rows, as if they were one text.
#include <algorithm>
#include <map>
#include <utility>

#include <millrace/operator.h>

#include "base/format.h"
#include "ir/values.h"
#include "ops/attention.h"
#include "ops/build.h"
#include "optim/token_graph.h"

namespace millrace::optim {
namespace {

constexpr int64_t kLarge = 1024;  // bytes; smaller constants stay in the graph

class TokenStep {
 public:
  TokenStep(const TokenGraph& whole, const DecodeShape& shape, bool narrow, std::vector<Array>* weights)
      : whole_(whole), from_(whole.graph()), shape_(shape), narrow_(narrow), weights_(weights), b_(to_) {}

  Graph build(const std::vector<Array>& given) {
    const Shape each{shape_.rows, shape_.tokens};
    tokens_ = to_.input("tokens", {i64, each});
    positions_ = to_.input("positions", {i64, each});
    slots_ = to_.input("slots", {i64, each});
    pages_ = to_.input("pages", {i64, {shape_.rows, shape_.pages_of_row}});
    last_ = to_.input("last", {i64, {shape_.rows}});
    for (const int node : whole_.attention())
      caches_.push_back(to_.input(fmt::format("cache {}", caches_.size()), cache_type(from_.node(node))));
    written_.resize(caches_.size());
    made_[from_.inputs()[0]] = b_.reshape(tokens_, {1, count(false)});
    for (size_t i = 0; i < given.size(); ++i) made_[from_.inputs()[i + 1]] = weight(given[i], true);
    // A position of -1 is no token: whatever it gives, nobody reads.
    const Value flat = b_.reshape(positions_, {count(false)});
    places_ = b_.binary("maximum", flat, b_.zeros(flat));
    std::vector<Value> outputs = {asked(from_.outputs()[0])};
    std::vector<std::string> names = {"logits"};
    for (const Value& written : written_) {
      names.push_back(fmt::format("new cache {}", names.size() - 1));
      outputs.push_back(written);
    }
    to_.set_origin("");
    to_.set_outputs(std::move(outputs), std::move(names));
    return std::move(to_);
  }

 private:
  /// Places along the axis of tokens.
  int64_t count(bool late) const { return late && !shape_.every ? shape_.rows : shape_.rows * shape_.tokens; }

  Type cache_type(const Node& attention) const {
    const Shape& first = from_.type(attention.operands[0]).shape;
    const int64_t both = ops::attention_form(attention)->packed
                             ? first[2].size() - attention.attributes.integer("heads")
                             : 2 * from_.type(attention.operands[1]).shape[1].size();
    return {narrow_ ? bf16 : f32, {shape_.pages * decode_page, both, kept_width(attention)}};
  }

  /// Of keys and of values, the narrower of which are filled up with zeros.
  int64_t kept_width(const Node& attention) const {
    const bool packed = ops::attention_form(attention)->packed;
    const int64_t keys = from_.type(attention.operands[0]).shape[3].size();
    return packed ? keys : std::max(keys, from_.type(attention.operands[2]).shape[3].size());
  }

  /// An input of its own; what is stored narrow is seen wide.
  Value weight(const Array& array, bool learnt) {
    const bool small = narrow_ && learnt && array.dtype() == f32 && array.shape().rank() >= 2;
    if (weights_) weights_->push_back(small ? array.converted(bf16) : array);
    const Value input =
        to_.input(fmt::format("weight {}", count_++), {small ? bf16 : array.dtype(), array.shape()});
    return b_.cast(input, array.dtype());
  }

  /// A value of the tokens, or (`late`) of those that are asked for.
  Value of_tokens(Value value, bool late) {
    const Value own = emit(value);
    if (!late || whole_.late(value) || shape_.every) return own;
    if (const auto found = asked_.find(value); found != asked_.end()) return found->second;
    const Value picked = to_.add("gather", {own, last_}, {{"axis", int64_t{whole_.axis(value)}}});
    return asked_[value] = picked;
  }

  /// The rows of what is known for all places along an axis that stand for the tokens' own places.
  Value table(Value value, int axis, bool late) {
    const auto key = std::make_tuple(value, axis, late);
    if (const auto found = tables_.find(key); found != tables_.end()) return found->second;
    return tables_[key] = write_table(value, axis, late);
  }

  Value write_table(Value value, int axis, bool late) {
    const Node& node = from_.node(value);
    // What only repeats or reorders a smaller table comes behind the lookup.
    if (node.op->broadcasts || node.op->reshapes() || node.op->permutation) {
      const Value source = node.operands[0];
      const Shape& shape = from_.type(source).shape;
      Attributes attributes = node.attributes;
      if (node.op->set_axis) node.op->set_axis(attributes, axis, count(late));
      for (int x = 0; x < shape.rank(); ++x)
        if (shape[x] != 1 && whole_.kept(node, 0, x) == axis)
          return to_.add(*node.op, {table(source, x, late)}, attributes);
      if (node.op->broadcasts) return to_.add(*node.op, {emit(source)}, attributes);
    }
    if (Shape places = from_.type(value).shape; places[axis] == 1) {  // behind the last token alone
      places[axis] = count(late);
      return b_.broadcast(emit(value), places);
    }
    const Value all = whole_.is_known(value) ? weight_of(value, false) : emit(value);
    Value places = places_;
    if (late && !shape_.every) places = to_.add("gather", {places_, last_}, {{"axis", int64_t{0}}});
    return to_.add("gather", {all, places}, {{"axis", int64_t{axis}}});
  }

  /// What is known of the whole graph's value, as a weight.
  Value weight_of(Value value, bool learnt) {
    if (const auto found = known_.find(value); found != known_.end()) return found->second;
    return known_[value] = weight(whole_.known(value), learnt);
  }

  Value emit(Value value) {
    if (const auto found = made_.find(value); found != made_.end()) return found->second;
    const Node& node = from_.node(value);
    // What is known is computed now, whatever was folded before; but what only repeats or reorders stays so.
    if (whole_.is_known(value) && !node.op->broadcasts && !node.op->reshapes() && !node.op->permutation) {
      const Array& known = whole_.known(value);
      const bool large = known.dtype().is_float() && known.bytes() >= kLarge;
      return made_[value] = large ? weight_of(value, true) : to_.constant(known);
    }
    const int axis = whole_.axis(value);
    Value first;
    if (axis < 0) {
      std::vector<Value> operands;
      for (const Value& operand : node.operands) operands.push_back(emit(operand));
      to_.set_origin(node.origin);
      first = to_.add_copy(from_, value.node, std::move(operands));
    } else if (ops::attention_form(node)) {
      first = attend(value.node);
    } else if (whole_.takes_last(value.node)) {
      // Of each text the token that is asked for, which is its last.
      Shape places = node.types[0].shape;
      places[axis] = count(true);
      first = b_.reshape(of_tokens(node.operands[0], true), places);
    } else {
      first = emit_node(node, axis, whole_.late(value));
    }
    for (size_t r = 0; r < node.types.size(); ++r)
      made_[{value.node, static_cast<int32_t>(r)}] = {first.node, first.output + static_cast<int32_t>(r)};
    return made_.at(value);
  }

  Value emit_node(const Node& node, int axis, bool late) {
    std::vector<Value> operands;
    for (size_t k = 0; k < node.operands.size(); ++k) {
      const Value operand = node.operands[k];
      const Shape& shape = from_.type(operand).shape;
      if (whole_.axis(operand) >= 0) {
        operands.push_back(of_tokens(operand, late));
        continue;
      }
      int along = -1;
      for (int x = 0; x < shape.rank() && along < 0; ++x)
        if (whole_.kept(node, k, x) == axis) along = x;
      operands.push_back(along < 0 ? emit(operand) : table(operand, along, late));
    }
    Attributes attributes = node.attributes;
    if (node.op->set_axis) node.op->set_axis(attributes, axis, count(late));
    to_.set_origin(node.origin);
    const Value made = to_.add(*node.op, std::move(operands), std::move(attributes));
    Shape expected = node.types[0].shape;
    expected[axis] = Dim(count(late));
    if (b_.shape(made) != expected)
      fail<InputError>("{} ({}) gives {} for {} tokens, not {}", node.op->name, node.origin.str(),
                       b_.shape(made).str(), count(late), expected.str());
    return made;
  }

  /// The tokens' keys and values go into the cache, and their queries look at what is in it.
  Value attend(int index) {
    const Node& node = from_.node(index);
    const bool packed = ops::attention_form(node)->packed;
    const std::vector<int>& layers = whole_.attention();
    const auto at = std::find(layers.begin(), layers.end(), index);
    const auto layer = static_cast<size_t>(at - layers.begin());
    const DType dtype = from_.type(node.operands[0]).dtype, kept = narrow_ ? bf16 : f32;
    to_.set_origin(node.origin);
    const int64_t width = kept_width(node);
    // [1, heads, count, width], or packed [1, count, heads, width] → [rows, tokens, heads, kept width]
    const auto by_rows = [&](size_t k) {
      Value x = emit(node.operands[k]);
      to_.set_origin(node.origin);
      if (!packed) x = b_.transpose(x, {0, 2, 1, 3});
      const Shape shape = b_.shape(x);
      x = b_.cast(b_.reshape(x, {shape_.rows, shape_.tokens, shape[2], shape[3]}), kept);
      const std::vector<int64_t> none(4, 0), more = {0, 0, 0, width - shape[3].size()};
      return more[3] == 0 ? x : to_.add("pad", {x}, {{"low", none}, {"high", more}});
    };
    Value q = by_rows(0), both;
    if (packed) {
      const int64_t heads = node.attributes.integer("heads");
      both = heads_of(q, heads, b_.shape(q)[2].size());
      q = heads_of(q, 0, heads);
    } else {
      const Value k = by_rows(1), v = by_rows(2);
      both = to_.add("concat", {k, v}, {{"axis", int64_t{2}}});
    }
    const Value written = to_.add("scatter_rows", {caches_[layer], slots_, both});
    written_[layer] = written;
    const Shape all = b_.shape(q);
    const double scale = ops::attention_scale(node.attributes, from_.type(node.operands[0]).shape[3].size());
    std::vector<Value> operands = {q, written, pages_, positions_};
    if (const Array& bias = whole_.biases()[layer]; !bias.empty()) operands.push_back(weight(bias, false));
    Value y = to_.add("paged_attention", operands, {{"page", decode_page}, {"scale", scale}});
    y = b_.cast(b_.reshape(y, {1, count(false), all[2], all[3]}), dtype);
    if (packed) return y;
    const int64_t own = node.types[0].shape[3].size();
    if (own < width) {
      const std::vector<int64_t> starts(4, 0), ends = {1, count(false), all[2].size(), own};
      y = to_.add("slice", {y}, {{"starts", starts}, {"ends", ends}});
    }
    return b_.transpose(y, {0, 2, 1, 3});
  }

  Value heads_of(Value x, int64_t from, int64_t to) {
    const Shape& shape = b_.shape(x);
    const std::vector<int64_t> starts = {0, 0, from, 0},
                               ends = {shape[0].size(), shape[1].size(), to, shape[3].size()};
    return to_.add("slice", {x}, {{"starts", starts}, {"ends", ends}});
  }

  /// f32 logits [rows, vocabulary], or of all tokens.
  Value asked(Value logits) {
    const Value wide = b_.cast(of_tokens(logits, true), f32);
    if (shape_.every) return b_.reshape(wide, {shape_.rows, shape_.tokens, whole_.vocabulary()});
    return b_.reshape(wide, {shape_.rows, whole_.vocabulary()});
  }

  const TokenGraph& whole_;
  const Graph& from_;
  DecodeShape shape_;
  bool narrow_;
  std::vector<Array>* weights_;
  int count_ = 0;  // of weights
  Graph to_;
  ops::Build b_;
  Value tokens_, positions_, slots_, pages_, last_, places_;
  std::vector<Value> caches_, written_;
  std::map<Value, Value> made_, asked_, known_;
  std::map<std::tuple<Value, int, bool>, Value> tables_;
};

}  // namespace

Graph build_token_step(const TokenGraph& whole, const DecodeShape& shape, bool narrow,
                       const std::vector<Array>& given, std::vector<Array>* weights) {
  return TokenStep(whole, shape, narrow, weights).build(given);
}

}  // namespace millrace::optim
