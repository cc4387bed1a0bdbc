// Control flow of tensors.
#include "base/format.h"
#include "trace/linearise.h"
#include "trace/node.h"

namespace millrace {
namespace {

Type slice_type(const Tensor& sequence, const Tensor& first, const std::source_location& where) {
  Type type = sequence.type();
  if (type.shape.rank() == 0 || first.rank() == 0 || type.shape[0] != first.dim(0))
    fail<TypeError>("{}: the sequences of a scan need the same leading dimension; they are {} and {}",
                    trace::place(where), first.type().str(), type.str());
  type.shape.erase(type.shape.begin());
  return type;
}

std::vector<Tensor> joined(std::span<const Tensor> a, std::span<const Tensor> b) {
  std::vector<Tensor> all(a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

/// What functions of tensors computed, as the body of control flow: it takes the symbols, then what was
/// captured, which is added to `operands`. What was recorded up to `since` is captured, not computed again.
std::shared_ptr<const Graph> body_of(std::span<const Tensor> symbols, std::span<const Tensor> outputs,
                                     uint64_t since, std::vector<Tensor>& operands) {
  trace::Captured captured = trace::capture(symbols, outputs, &operands, since);
  captured.graph.set_outputs(captured.values_of(outputs));
  return std::make_shared<const Graph>(std::move(captured.graph));
}

void require_bool(const Tensor& condition, const char* of, const std::source_location& where) {
  if (!condition.defined() || condition.type() != Type{boolean, {}})
    fail<TypeError>("{}: the condition of {} must be bool[]{}", trace::place(where), of,
                    condition.defined() ? ", but it is " + condition.type().str() : ", and it has no value");
}

}  // namespace

ScanResult scan(const ScanStep& step, std::span<const Tensor> carries, std::span<const Tensor> sequences,
                bool reverse, std::source_location where) {
  if (sequences.empty()) fail<TypeError>("{}: a scan needs at least one sequence", trace::place(where));
  std::vector<Tensor> symbols, operands = joined(carries, sequences);
  for (const Tensor& carry : carries)
    symbols.push_back(Tensor::symbol(fmt::format("carry {}", symbols.size()), carry.type()));
  for (const Tensor& sequence : sequences)
    symbols.push_back(Tensor::symbol(fmt::format("slice {}", symbols.size() - carries.size()),
                                     slice_type(sequence, sequences[0], where)));
  const std::span<const Tensor> all(symbols);
  const uint64_t since = trace::recorded();
  const ScanResult made = step(all.first(carries.size()), all.subspan(carries.size()));
  if (made.carries.size() != carries.size())
    fail<TypeError>("{}: a scan of {} carries needs {} of each step, not {}", trace::place(where),
                    carries.size(), carries.size(), made.carries.size());
  auto body = body_of(symbols, joined(made.carries, made.stacked), since, operands);
  const std::vector<Tensor> tensors = trace::record(get_operator("scan"), operands,
                                                    {{"carries", static_cast<int64_t>(carries.size())},
                                                     {"sequences", static_cast<int64_t>(sequences.size())},
                                                     {"length", Shape{sequences[0].dim(0)}},
                                                     {"reverse", reverse}},
                                                    std::move(body), where);
  const auto split = tensors.begin() + static_cast<int64_t>(carries.size());
  return {{tensors.begin(), split}, {split, tensors.end()}};
}

std::vector<Tensor> cond(const Tensor& condition, const Branch& then, const Branch& otherwise,
                         std::source_location where) {
  require_bool(condition, "cond", where);
  const uint64_t since = trace::recorded();
  const std::vector<Tensor> one = then(), other = otherwise();
  if (one.size() != other.size())
    fail<TypeError>("{}: the branches of a cond give {} tensors and {}", trace::place(where), one.size(),
                    other.size());
  std::vector<Tensor> operands = {condition};
  auto body = body_of({}, joined(one, other), since, operands);
  return trace::record(get_operator("cond"), operands, {}, std::move(body), where);
}

WhileResult while_loop(const WhileCondition& condition, const WhileStep& step, std::span<const Tensor> state,
                       int64_t limit, std::source_location where) {
  if (limit < 0 || limit > no_limit)
    fail<TypeError>("{}: a while_loop of at most {} steps", trace::place(where), limit);
  const Tensor going = condition(state);
  require_bool(going, "while_loop", where);
  const std::vector<Tensor> first = {going, Tensor(Array::scalar(i64, 0))};
  std::vector<Tensor> symbols, operands = joined(first, state);
  for (const Tensor& carry : operands)
    symbols.push_back(Tensor::symbol(fmt::format("state {}", symbols.size()), carry.type()));
  const uint64_t since = trace::recorded();
  const ScanResult made = step(std::span<const Tensor>(symbols).subspan(2));
  if (made.carries.size() != state.size())
    fail<TypeError>("{}: a while_loop over {} tensors needs {} of each step, not {}", trace::place(where),
                    state.size(), state.size(), made.carries.size());
  const Tensor goes_on = condition(made.carries);
  require_bool(goes_on, "while_loop", where);
  const std::vector<Tensor> next = {goes_on, symbols[1] + 1};
  auto body = body_of(symbols, joined(joined(next, made.carries), made.stacked), since, operands);
  const auto carries = static_cast<int64_t>(symbols.size());
  const std::vector<Tensor> tensors =
      trace::record(get_operator("while_loop"), operands, {{"carries", carries}, {"length", Shape{limit}}},
                    std::move(body), where);
  return {{tensors.begin() + 2, tensors.begin() + carries},
          {tensors.begin() + carries, tensors.end()},
          tensors[1]};
}

}  // namespace millrace
