#include "backend/cpu/codegen/nest.h"

#include <algorithm>
#include <cstdint>

#include "base/cpu.h"
#include "base/format.h"

namespace millrace::codegen {

bool Nest::has_reduced() const { return std::find(reduced.begin(), reduced.end(), true) != reduced.end(); }

std::vector<int> Nest::outer_dims() const {
  std::vector<int> dims;
  if (split >= 0) dims.push_back(kPart);
  for (int d = 0; d < lane_dim(); ++d)
    if (!reduced[d] && d != fastest) dims.push_back(d);
  if (!lane_reduced() && group < sizes().back()) dims.push_back(kLaneGroup);
  if (fastest >= 0) dims.push_back(fastest);
  return dims;
}

int64_t Nest::outer_size(int outer_dim) const {
  if (outer_dim == kPart) return parts;
  if (outer_dim == kLaneGroup) return (sizes().back() + group - 1) / group;
  if (outer_dim == fastest && tile > 0) return (sizes()[outer_dim] + tile - 1) / tile;
  return sizes()[outer_dim];
}

int64_t Nest::outer_count() const {
  int64_t count = 1;
  for (const int d : outer_dims()) count *= outer_size(d);
  return count;
}

double Nest::outer_elements() const {
  double elements = 1;
  for (int d = 0; d < rank(); ++d) {
    int64_t size = sizes()[d];
    if (d == lane_dim() && size > 1) size = (size + lanes - 1) / lanes * lanes;
    elements *= static_cast<double>(size);
  }
  return elements / static_cast<double>(outer_count());
}

std::vector<int*> Nest::roots() {
  std::vector<int*> all;
  for (Store& s : stores) all.insert(all.end(), {&s.offset, &s.value});
  for (Reduce& r : reduces) {
    all.insert(all.end(), {&r.offset, &r.value});
    if (r.position >= 0) all.push_back(&r.position);
  }
  return all;
}

void Nest::rebuild(std::vector<int64_t> sizes, std::vector<bool> is_reduced,
                   const std::function<int(Dag&, const Linear&)>& map) {
  Dag to(std::move(sizes));
  Dag::copy(dag, to, roots(), map);
  dag = std::move(to);
  reduced = std::move(is_reduced);
}

Nest Nest::for_any_length() const {
  Nest code = *this;
  const int64_t length = sizes()[0];
  const bool flat = rank() == 1;
  // Of a tail that only the call tells, library functions would be called for idle lanes, too.
  bool masks = cpu_has("avx512bw");
  for (int id = 0; id < dag.size(); ++id) masks &= dag[id].kind != ExprKind::call;
  if (reduced[0] || split >= 0 || fastest == 0) return code;
  if (flat && (length == 1 || (length <= lanes && !masks))) return code;
  // Whether positions fit into 32 bits is decided by the bound: a coarse one, for few kinds of code.
  int64_t bound = 256;
  while (bound < length && bound < INT64_MAX / 16) bound *= 16;
  if (flat) {
    const int64_t tail = length % lanes;
    bound = length < lanes ? lanes - 1 : bound + (masks ? std::min<int64_t>(tail, 1) : tail);
    code.any_tail = masks && bound % lanes != 0;
    if (group >= length) code.group = bound;
  }
  std::vector<int64_t> bounds = sizes();
  bounds[0] = bound;
  code.rebuild(std::move(bounds), reduced, [](Dag& to, const Linear& l) { return to.linear(l); });
  code.any_length = true;
  return code;
}

std::string Nest::text() const {
  std::string text = fmt::format(
      "sizes {}{} reduced {} lanes {} group {} fastest {} tile {} split {} part {} of {}\n",
      any_tail     ? "with tails to "
      : any_length ? "to "
                   : "",
      fmt::join(sizes(), ","), fmt::join(reduced, ","), lanes, group, fastest, tile, split, part_size, parts);
  for (const Store& s : stores)
    text +=
        fmt::format("store {} {} {} {} {}\n", s.buffer, s.memory.name(), s.offset, s.value, s.stream_align);
  for (const Reduce& r : reduces)
    text += fmt::format("reduce {} {} {} {} {} {} {} {} {}\n", static_cast<int>(r.kind), r.value, r.position,
                        r.offset, r.buffer, r.memory.name(), r.value_buffer, r.part_stride, r.divisor);
  for (const auto& [buffer, bytes] : ahead) text += fmt::format("ahead {} {}\n", buffer, bytes);
  for (int id = 0; id < dag.size(); ++id) text += text_of(dag[id]) + "\n";
  return text;
}

}  // namespace millrace::codegen
