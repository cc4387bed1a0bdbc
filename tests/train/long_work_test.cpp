#include "train/long_work.h"

#include <doctest/doctest.h>
#include <future>
#include <vector>

using namespace millrace;

TEST_CASE("what takes long is told, what does not is not") {
  std::vector<std::string> lines;
  std::promise<void> told;
  {
    const train::LongWork work(
        [&](const std::string& line) {
          lines.push_back(line);
          if (lines.size() == 2) told.set_value();
        },
        "compiling", std::chrono::milliseconds(1));
    told.get_future().wait();  // for ever, where nothing is told
  }
  CHECK(lines.size() >= 2);
  CHECK(lines[0] == "compiling: 0 s so far");
  lines.clear();
  {
    const train::LongWork work([&](const std::string& line) { lines.push_back(line); }, "nothing");
  }
  CHECK(lines.empty());
}
