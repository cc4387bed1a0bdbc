#include <numeric>

#include "backend/cpu/codegen/nest.h"

namespace millrace::codegen {
namespace {

/// Whether iteration i of the slowest dimension stays within the i-th of as many pieces of a tensor with so
/// many elements.
bool stays_in_row(const Nest& nest, int offset, int64_t elements) {
  const Linear l = nest.dag.to_linear(offset);
  const int64_t rows = nest.sizes()[0];
  if (!l.atoms.empty() || elements % rows != 0 || l.of_dim(0) != elements / rows) return false;
  int64_t low = l.base, high = l.base;
  for (const Term& t : l.dims)
    if (t.id != 0) (t.coefficient < 0 ? low : high) += t.coefficient * (nest.sizes()[t.id] - 1);
  return low >= 0 && high < elements / rows;
}

}  // namespace

int64_t NestRows::grain(int64_t rows) const {
  if (most == 0 || rows <= 0 || most % rows != 0) return 0;
  return group > 0 ? group / std::gcd(most / rows, group) : 1;
}

std::pair<int64_t, int64_t> NestRows::outer(int64_t rows, int64_t begin, int64_t end) const {
  if (group > 0) return {begin * (most / rows) / group, (end * (most / rows) + group - 1) / group};
  return {begin * (outer_count / rows), end * (outer_count / rows)};
}

NestRows rows_of(const Nest& nest, const KernelRequest& request) {
  NestRows found;
  const size_t operands = request.node.operands.size();
  found.operands.assign(operands, 1);
  const std::vector<int> loops = nest.outer_dims();
  const bool flat = nest.rank() == 1;
  if (nest.reduced[0] || nest.split >= 0 || loops.empty() || loops[0] != (flat ? Nest::kLaneGroup : 0))
    return found;
  const auto result_stays = [&](int buffer, int offset) {
    const size_t result = static_cast<size_t>(buffer) - operands;
    return stays_in_row(nest, offset, request.node.types[result].shape.count());
  };
  bool all = true;
  for (const Store& s : nest.stores) all = all && result_stays(s.buffer, s.offset);
  for (const Reduce& r : nest.reduces) all = all && result_stays(r.buffer, r.offset);
  if (!all) return found;
  for (int id = 0; id < nest.dag.size(); ++id) {
    const Expr& e = nest.dag[id];
    if (e.kind != ExprKind::load || e.bits >= static_cast<int64_t>(operands)) continue;
    const int64_t elements = request.operand_type(static_cast<int>(e.bits)).shape.count();
    if (!stays_in_row(nest, e.args[0], elements)) found.operands[e.bits] = 0;
  }
  found.most = nest.sizes()[0];
  found.outer_count = nest.outer_count();
  // Where the slowest dimension runs fastest, in tiles, nothing else is left to loop over.
  found.group = flat ? nest.group : nest.fastest == 0 ? nest.tile : 0;
  return found;
}

}  // namespace millrace::codegen
