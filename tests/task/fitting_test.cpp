#include "task/fitting.h"

#include <doctest/doctest.h>

#include "base/file.h"
#include "support/temp_folder.h"
#include "task/feeds.h"
#include "task/model.h"

using namespace millrace;
using millrace::testing::TempFolder;

TEST_CASE("a model that is fitted to rankings sees the rows of each query, and no padding") {
  const TempFolder folder;
  const std::string path = (folder / "rank.train").string();
  write_file(path, "2 1:0.5 2:1\n0 1:0.25\n1 2:3\n0 1:4\n1 1:5\n1 1:6 2:2\n0 2:7\n2 1:8\n0 1:9\n");
  write_file(path + ".query", "3\n1\n5\n");
  const std::vector<std::string> keys = {"data.train=" + path, "output.kind=rank", "model.kind=boosting"};
  std::vector<std::string> notes;
  task::Opened opened = task::open_training(task::parse_recipe("", "r.toml", keys), "", 0, nullptr, notes);
  task::make_network(opened.task);
  task::TaskFeed tests;
  const nn::FitData data = task::fit_data(opened.task, opened.training, tests, [](int64_t, int64_t) {});
  CHECK(data.predicted == nn::Predicted::ranks);
  CHECK(data.training.queries == std::vector<int64_t>{3, 1, 5});
  CHECK(data.training.count == 9);
  CHECK(data.training.targets.to_doubles() == std::vector<double>{2, 0, 1, 0, 1, 1, 0, 2, 0});
  CHECK(data.tests.count == 0);
}
