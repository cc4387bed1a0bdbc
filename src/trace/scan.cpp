// Loops of tensors.
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

}  // namespace

ScanResult scan(const ScanStep& step, std::span<const Tensor> carries, std::span<const Tensor> sequences,
                bool reverse, std::source_location where) {
  if (sequences.empty()) fail<TypeError>("{}: a scan needs at least one sequence", trace::place(where));
  std::vector<Tensor> symbols, operands(carries.begin(), carries.end());
  for (const Tensor& carry : carries)
    symbols.push_back(Tensor::symbol(fmt::format("carry {}", symbols.size()), carry.type()));
  for (const Tensor& sequence : sequences) {
    operands.push_back(sequence);
    symbols.push_back(Tensor::symbol(fmt::format("slice {}", symbols.size() - carries.size()),
                                     slice_type(sequence, sequences[0], where)));
  }
  const std::span<const Tensor> all(symbols);
  const ScanResult made = step(all.first(carries.size()), all.subspan(carries.size()));
  if (made.carries.size() != carries.size())
    fail<TypeError>("{}: a scan of {} carries needs {} of each step, not {}", trace::place(where),
                    carries.size(), carries.size(), made.carries.size());
  std::vector<Tensor> outputs = made.carries;
  outputs.insert(outputs.end(), made.stacked.begin(), made.stacked.end());

  auto body = std::make_shared<Graph>();
  std::map<trace::Slot, Value> values;
  for (const Tensor& symbol : symbols)
    values[{symbol.node().get(), 0}] = body->input(symbol.node()->name, symbol.type());
  const trace::Linear linear = trace::linearise(outputs);
  for (const Tensor& leaf : linear.leaf_tensors)
    if (!values.contains({leaf.node().get(), leaf.output()})) operands.push_back(leaf);
  values = trace::append(*body, linear, std::move(values));
  std::vector<Value> results;
  for (const Tensor& output : outputs) results.push_back(values.at({output.node().get(), output.output()}));
  body->set_outputs(std::move(results));

  const std::vector<Tensor> tensors = trace::record(get_operator("scan"), operands,
                                                    {{"carries", static_cast<int64_t>(carries.size())},
                                                     {"sequences", static_cast<int64_t>(sequences.size())},
                                                     {"length", Shape{sequences[0].dim(0)}},
                                                     {"reverse", reverse}},
                                                    std::move(body), where);
  const auto split = tensors.begin() + static_cast<int64_t>(carries.size());
  return {{tensors.begin(), split}, {split, tensors.end()}};
}

}  // namespace millrace
