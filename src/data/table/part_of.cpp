#include "data/table/part_of.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "base/format.h"
#include "base/number_from.h"
#include "data/table/labels.h"
#include "data/table/split.h"

namespace millrace::data {

PartSize PartSize::parse(std::string_view text) {
  PartSize size;
  const bool share = text.ends_with('%');
  std::string_view number = text.substr(0, text.size() - (share ? 1 : 0));
  while (number.ends_with(' ')) number.remove_suffix(1);
  if (share)
    size.share = number_from<double>(number).value_or(0) / 100;
  else
    size.count = number_from<int64_t>(number).value_or(0);
  if (share ? !(size.share > 0 && size.share <= 1) : size.count < 1)
    fail<InputError>("cannot be '{}': it is a share, as 2%, up to 100%, or a number of samples, as 500",
                     text);
  return size;
}

int64_t PartSize::of(int64_t all) const {
  const int64_t asked = share > 0 ? std::llround(share * static_cast<double>(all)) : count;
  return std::clamp<int64_t>(asked, std::min<int64_t>(1, all), all);
}

std::vector<int64_t> part_of(const Dataset& set, int64_t count, uint64_t seed,
                             std::span<const int64_t> strata, const std::string& group) {
  std::vector<int64_t> part(static_cast<size_t>(set.count()));
  std::iota(part.begin(), part.end(), 0);
  if (count >= set.count()) return part;
  const double share = static_cast<double>(count) / static_cast<double>(set.count());
  if (!group.empty())
    return split_samples(
        set,
        {{{"taken", share}, {"left", 1 - share}}, {SplitBy::How::group, group}, seed, "data.where ="})[0];
  std::map<int64_t, std::vector<std::pair<uint64_t, int64_t>>> kinds;
  for (const int64_t i : part)
    kinds[strata.empty() ? 0 : strata[static_cast<size_t>(i)]].emplace_back(split_hash(key_of(set, i), seed),
                                                                            i);
  // Of fewer samples than kinds no kind can have its share.
  const bool all_kinds = count >= std::ssize(kinds);
  if (!all_kinds) {
    decltype(kinds) together;
    for (auto& [kind, samples] : kinds) together[0].insert(together[0].end(), samples.begin(), samples.end());
    kinds = std::move(together);
  }
  part.clear();
  for (auto& [kind, samples] : kinds) {
    std::sort(samples.begin(), samples.end());
    const auto most = std::max<int64_t>(1, std::llround(share * static_cast<double>(samples.size())));
    for (int64_t i = 0; i < most; ++i) part.push_back(samples[static_cast<size_t>(i)].second);
  }
  std::sort(part.begin(), part.end());
  return part;
}

}  // namespace millrace::data
