#include "task/would_fit.h"

#include <cmath>
#include <vector>

#include "base/format.h"
#include "base/words.h"

namespace millrace::task {

std::string would_fit(const Recipe::Train& train, double fixed, double of_rows, double memory) {
  const int64_t rows = train.batch / train.accumulate;
  const double left = memory - fixed;
  if (rows < 1 || !(of_rows > 0) || fixed + of_rows <= memory) return {};
  const double share = std::floor(static_cast<double>(rows) * left / of_rows);
  const auto most = share < 1 ? int64_t{0} : static_cast<int64_t>(share);  // rows at a time
  std::vector<std::string> ways;
  if (most > 0) {
    const int64_t batch = most * train.accumulate;
    ways.push_back(train.accumulate > 1
                       ? fmt::format("train.batch = {} (in {} parts)", batch, train.accumulate)
                       : fmt::format("train.batch = {}", batch));
    int64_t parts = train.accumulate + 1;
    while (parts <= train.batch && (train.batch % parts != 0 || train.batch / parts > most)) ++parts;
    if (parts <= train.batch)
      ways.push_back(fmt::format("train.accumulate = {} (with the batch as it is)", parts));
  }
  if (train.precision == "fp32" && fixed + of_rows / 2 <= memory)
    ways.emplace_back("train.precision = \"bf16\"");
  else if (train.precision == "fp32" && (fixed + of_rows) / 2 <= memory)
    ways.emplace_back("train.precision = \"bf16-pure\"");
  return listed(ways, "or");
}

}  // namespace millrace::task
