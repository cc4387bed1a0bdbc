#include "optim/accumulate.h"

#include "base/format.h"
#include "ops/build.h"
#include "optim/row_gradient.h"

namespace millrace::optim {
namespace {

/// Inlines the parts into one graph.
class Accumulator {
 public:
  Accumulator(const Differentiated& part, int64_t parts, const StepInputs& inputs,
              const std::vector<TensorSpec>& whole)
      : part_(part), parts_(parts), inputs_(inputs), one_(part.graph), rows_(part.gradients.size()) {
    one_.set_outputs(joined({&part.means, &part.buffers, &part.gradients}));
    for (size_t i = 0; i < one_.inputs().size(); ++i)
      graph().input(one_.input_names()[i], i < whole.size() ? whole[i].type : one_.type(one_.inputs()[i]));
    given_ = graph().inputs();
    // Where a batch reads more rows than the table has, the table's own size is the smaller one.
    for (const Value& gradient : part.gradients) {
      const auto count = row_count(one_, gradient);
      by_rows_.push_back(count && *count * parts <= one_.type(gradient).shape[0].size());
    }
  }

  Differentiated run() {
    for (int64_t number = 0; number < parts_; ++number) append(number);
    ops::Build b(graph());
    for (Value& mean : all_.means) mean = b.mul(mean, 1.0 / static_cast<double>(parts_));
    for (size_t k = 0; k < rows_.size(); ++k)
      if (by_rows_[k]) all_.gradients[k] = sum_of_rows(graph(), rows_[k], one_.type(part_.gradients[k]));
    graph().set_origin("");
    return std::move(all_);
  }

 private:
  Graph& graph() { return all_.graph; }

  static std::vector<Value> joined(std::initializer_list<const std::vector<Value>*> lists) {
    std::vector<Value> values;
    for (const auto* list : lists) values.insert(values.end(), list->begin(), list->end());
    return values;
  }

  /// What the parts so far have left.
  std::vector<Value> carried() const {
    std::vector<Value> values = joined({&all_.means, &all_.buffers});
    for (size_t k = 0; k < all_.gradients.size(); ++k) {
      const auto left = by_rows_[k] ? joined({&rows_[k].indices, &rows_[k].updates})
                                    : std::vector<Value>{all_.gradients[k]};
      values.insert(values.end(), left.begin(), left.end());
    }
    return values;
  }

  Value after(Value value, const std::vector<Value>& others) {
    std::vector<Value> operands{value};
    operands.insert(operands.end(), others.begin(), others.end());
    return graph().add("after", std::move(operands));
  }

  /// The inputs of a part. All that differs from part to part comes after the part before, down to what that
  /// one leaves: otherwise fusion and waves would work on several parts at a time, and activations of all
  /// would be there at once.
  std::vector<Value> arguments(int64_t number) {
    std::vector<Value> values = given_;
    graph().set_origin("accumulate");
    Value& key = values[inputs_.key];
    if (number > 0) key = after(key, carried());
    const auto later = [&](Value value) { return number > 0 ? after(value, {key}) : value; };
    for (int i = 0; i < inputs_.data; ++i)
      if (const Type& mine = one_.type(one_.inputs()[i]); mine != graph().type(given_[i]))
        values[i] = cut(later(given_[i]), number, mine.shape);
    for (size_t i = inputs_.first_buffer; i < values.size(); ++i)
      if (!graph().is_input(values[i])) values[i] = later(values[i]);
    if (number == 0) return values;
    // Seeds so far apart that no two parts, whatever the seed, draw the same numbers.
    const std::vector<double> apart{static_cast<double>(number << 40), 0};
    key = ops::Build(graph()).add(key, graph().constant(Array::of(i64, {2}, apart)));
    return values;
  }

  /// The rows of a part.
  Value cut(Value whole, int64_t number, const Shape& part) {
    std::vector<int64_t> starts(part.size(), 0), ends = part.sizes();
    starts[0] = number * ends[0];
    ends[0] += starts[0];
    return graph().add("slice", {whole}, {{"starts", starts}, {"ends", ends}});
  }

  void append(int64_t number) {
    const std::vector<Value> made = inline_graph(graph(), one_, arguments(number));
    auto next = made.begin();
    graph().set_origin({"accumulate", Phase::backward});
    ops::Build b(graph());
    const auto add = [&](std::vector<Value>& sums, size_t k, Value value) {
      if (number == 0)
        sums.push_back(value);
      else
        sums[k] = b.add(sums[k], value);
    };
    for (size_t k = 0; k < part_.means.size(); ++k) add(all_.means, k, *next++);
    all_.buffers.clear();
    for (size_t k = 0; k < part_.buffers.size(); ++k) {
      given_[inputs_.first_buffer + k] = *next;
      all_.buffers.push_back(*next++);
    }
    for (size_t k = 0; k < part_.gradients.size(); ++k) {
      if (!by_rows_[k]) {
        add(all_.gradients, k, *next++);
        continue;
      }
      collect_rows(graph(), *next++, rows_[k]);
      if (number == 0) all_.gradients.emplace_back();
    }
  }

  const Differentiated& part_;
  const int64_t parts_;
  const StepInputs inputs_;
  Graph one_;  // the part's, with all that is wanted of it as outputs
  Differentiated all_;
  std::vector<Value> given_;   // the step's inputs, the buffers as the part before left them
  std::vector<bool> by_rows_;  // of each gradient: whether it stays the rows that it has
  std::vector<Rows> rows_;
};

}  // namespace

std::vector<TensorSpec> part_inputs(const std::vector<TensorSpec>& whole, int64_t parts) {
  for (const TensorSpec& spec : whole)
    if (!spec.type.shape.is_static())
      fail<TypeError>("input '{}' of a training step has shape {}: give it sizes", spec.name,
                      spec.type.shape.str());
  if (parts < 1) fail<InputError>("a batch is worked off in 1 part or more, not in {}", parts);
  if (parts == 1) return whole;
  if (whole.empty() || whole[0].type.shape.empty())
    fail<InputError>("accumulate is {}, but the step has no input with a batch to be divided", parts);
  const Dim batch = whole[0].type.shape[0];
  if (batch.size() % parts != 0)
    fail<InputError>("a batch of {} cannot be divided into accumulate = {} equal parts", batch.size(), parts);
  std::vector<TensorSpec> part = whole;
  for (TensorSpec& spec : part)
    if (Shape& shape = spec.type.shape; !shape.empty() && shape[0] == batch) shape[0] = batch.size() / parts;
  return part;
}

Differentiated accumulate(const Differentiated& part, int64_t parts, const StepInputs& inputs,
                          const std::vector<TensorSpec>& whole) {
  return Accumulator(part, parts, inputs, whole).run();
}

}  // namespace millrace::optim
