// Lines of rules and names: what other programs' weights are called here (train.init_names).
#include <algorithm>
#include <cstdlib>
#include <map>

#include "fuzz/fuzz.h"
#include "track/weight_names.h"

using namespace millrace;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t most = 4096;  // patterns of many stars take long by design, and are the user's own
  if (size > most) return 0;
  std::vector<track::NameRule> rules;
  std::map<std::string, Array> tensors;
  for (std::string_view left = fuzz::text(data, size); !left.empty();) {
    const size_t end = std::min(left.find('\n'), left.size());
    const std::string line(left.substr(0, end));
    left.remove_prefix(std::min(end + 1, left.size()));
    if (line.starts_with("=")) {
      const auto rank = static_cast<int64_t>(line.size() % 3);
      tensors.emplace(line.substr(1), Array(f32, Shape(std::vector<int64_t>(static_cast<size_t>(rank), 2))));
    } else if (std::count(line.begin(), line.end(), '*') <= 3) {
      fuzz::refuse_or_take([&] { rules.push_back(track::parse_name_rule(line)); });
    }
  }
  fuzz::refuse_or_take([&] {
    for (const auto& [name, array] : track::rename_tensors(tensors, rules))
      if (array.count() < 1) std::abort();
  });
  return 0;
}
