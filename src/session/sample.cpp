#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <vector>

#include <millrace/decoder.h>
#include <millrace/random.h>

#include "base/format.h"

namespace millrace {
namespace {

/// A token that may come, and how probable it is, not yet divided by the sum.
struct Candidate {
  int32_t id;
  double weight;
};

/// The most probable first, of equal ones the smaller id.
bool before(const Candidate& a, const Candidate& b) {
  return a.weight != b.weight ? a.weight > b.weight : a.id < b.id;
}

/// The logits with those of tokens that were there made smaller.
std::vector<double> penalised(std::span<const float> logits, std::span<const int32_t> there, double factor) {
  std::vector<double> all(logits.begin(), logits.end());
  if (factor == 1) return all;
  for (const int32_t id : std::set<int32_t>(there.begin(), there.end()))
    if (id >= 0 && static_cast<size_t>(id) < all.size())
      all[static_cast<size_t>(id)] *= all[static_cast<size_t>(id)] > 0 ? 1 / factor : factor;
  return all;
}

/// The fewest of the most probable ones that make up `share` of the whole.
void keep_share(std::vector<Candidate>& list, double share) {
  std::sort(list.begin(), list.end(), before);
  const double all = std::accumulate(list.begin(), list.end(), 0.0,
                                     [](double sum, const Candidate& c) { return sum + c.weight; });
  double sum = 0;
  size_t kept = 0;
  while (kept < list.size() && (kept == 0 || sum < share * all)) sum += list[kept++].weight;
  list.resize(kept);
}

}  // namespace

void check_sample_options(const SampleOptions& o) {
  if (!(o.temperature >= 0) || std::isinf(o.temperature))
    fail<InputError>("a temperature of {}: from 0 (always the most probable token) on", o.temperature);
  if (o.top_k < 0) fail<InputError>("top-k {}: at least 1 token, or 0 for all", o.top_k);
  if (!(o.top_p > 0 && o.top_p <= 1)) fail<InputError>("top-p {}: above 0, and 1 at most", o.top_p);
  if (!(o.repetition > 0) || std::isinf(o.repetition))
    fail<InputError>("a repetition penalty of {}: above 0; 1 changes nothing", o.repetition);
}

int32_t sample_token(std::span<const float> logits, std::span<const int32_t> there, const SampleOptions& o,
                     uint64_t stream, uint64_t place) {
  check_sample_options(o);
  if (logits.empty()) fail<InputError>("there are no logits to choose from");
  const std::vector<double> all = penalised(logits, there, o.repetition);
  constexpr double infinite = std::numeric_limits<double>::infinity();
  double highest = -infinite;
  for (const double logit : all) {
    if (!(logit < infinite))
      fail<InputError>("the model's logits are no numbers: its weights, or what it was given, are damaged");
    highest = std::max(highest, logit);
  }
  if (highest == -infinite) fail<InputError>("no token can come next: all logits are -infinity");
  if (o.temperature == 0) return static_cast<int32_t>(std::max_element(all.begin(), all.end()) - all.begin());
  std::vector<Candidate> list;
  for (size_t i = 0; i < all.size(); ++i)
    if (const double weight = std::exp((all[i] - highest) / o.temperature); weight > 0)
      list.push_back({static_cast<int32_t>(i), weight});
  if (o.top_k > 0 && static_cast<size_t>(o.top_k) < list.size()) {
    std::nth_element(list.begin(), list.begin() + o.top_k - 1, list.end(), before);
    list.resize(static_cast<size_t>(o.top_k));
  }
  if (o.top_p < 1) keep_share(list, o.top_p);
  std::sort(list.begin(), list.end(), [](const Candidate& a, const Candidate& b) { return a.id < b.id; });
  double sum = 0;
  for (const Candidate& c : list) sum += c.weight;
  RandomStream random(o.seed, stream, place);
  const double at = (static_cast<double>(random.next()) + 0.5) * 0x1p-32 * sum;
  double passed = 0;
  for (const Candidate& c : list)
    if ((passed += c.weight) > at) return c.id;
  return list.back().id;
}

}  // namespace millrace
