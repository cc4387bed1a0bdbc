#include "model_formats/sized_constants.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "ir/first_along.h"

namespace millrace {
namespace {

/// The first place of an array along an axis, if all others there are the same, bit for bit.
std::optional<Array> repeated_part(const Array& array, size_t axis) {
  const Array part = first_along(array, static_cast<int>(axis), 1);
  const int64_t places = array.shape()[axis].size();
  int64_t outer = 1;
  for (size_t d = 0; d < axis; ++d) outer *= array.shape()[d].size();
  const auto bytes = static_cast<size_t>(part.bytes() / outer);
  const auto *from = static_cast<const char*>(array.data()), *own = static_cast<const char*>(part.data());
  for (int64_t o = 0; o < outer; ++o, own += bytes)
    for (int64_t place = 0; place < places; ++place, from += bytes)
      if (std::memcmp(own, from, bytes) != 0) return std::nullopt;
  return part;
}

/// One constant as it stands in all graphs; empty where it does not, or is of one size.
std::vector<Array> in_all(const std::vector<Graph>& graphs, int node) {
  std::vector<Array> all;
  bool one_size = true;
  for (const Graph& graph : graphs) {
    const Array* const constant = node < graph.size() ? graph.constant_value({node, 0}) : nullptr;
    if (!constant || constant->count() == 0 ||
        (!all.empty() &&
         (constant->dtype() != all[0].dtype() || constant->shape().rank() != all[0].shape().rank())))
      return {};
    one_size = one_size && (all.empty() || constant->shape() == all[0].shape());
    all.push_back(*constant);
  }
  if (one_size) all.clear();
  return all;
}

bool is_beginning_of(const Array& part, Array whole) {
  for (size_t d = 0; d < part.shape().size(); ++d) {
    const int64_t size = part.shape()[d].size();
    if (size > whole.shape()[d].size()) return false;
    if (size < whole.shape()[d].size()) whole = first_along(whole, static_cast<int>(d), size);
  }
  return part.identical(whole);
}

SizedConstant made_of(std::vector<Array> all, size_t largest) {
  SizedConstant made;
  for (size_t d = 0; d < all[0].shape().size(); ++d) {
    const auto same = [&](const Array& each) { return each.shape()[d] == all[0].shape()[d]; };
    if (std::all_of(all.begin(), all.end(), same)) continue;
    std::vector<Array> parts;
    for (const Array& each : all)
      if (std::optional<Array> part = repeated_part(each, d)) parts.push_back(std::move(*part));
    if (parts.size() == all.size()) {
      all = std::move(parts);
      made.repeats = true;
    } else {
      made.grows = true;
    }
  }
  const Array& whole = all[largest];
  if (!std::all_of(all.begin(), all.end(), [&](const Array& each) { return is_beginning_of(each, whole); }))
    return {};
  made.kept = whole;
  return made;
}

}  // namespace

std::vector<SizedConstant> sized_constants(const std::vector<Graph>& graphs, size_t largest) {
  std::vector<SizedConstant> made(static_cast<size_t>(graphs[0].size()));
  for (int i = 0; i < graphs[0].size(); ++i)
    if (std::vector<Array> all = in_all(graphs, i); !all.empty())
      made[static_cast<size_t>(i)] = made_of(std::move(all), largest);
  return made;
}

Value write_sized(Graph& graph, Value kept, const SizedConstant& from, const Shape& shape) {
  if (from.grows) {
    std::vector<int64_t> ends = from.kept.shape().sizes();
    for (size_t d = 0; d < ends.size(); ++d) ends[d] = std::min(ends[d], shape[d].size());
    kept = graph.add("slice", {kept},
                     {{"starts", std::vector<int64_t>(ends.size(), 0)},
                      {"ends", ends},
                      {"steps", std::vector<int64_t>(ends.size(), 1)}});
  }
  return from.repeats ? graph.add("broadcast", {kept}, {{"shape", shape}}) : kept;
}

}  // namespace millrace
