// Data that cannot be read any more at the end of an epoch: nothing that was trained is lost.
#include <algorithm>
#include <atomic>
#include <doctest/doctest.h>
#include <fstream>
#include <utility>

#include <millrace/dataset.h>

#include "base/file.h"
#include "base/format.h"
#include "support/temp_folder.h"
#include "task/feeds.h"
#include "task/model.h"
#include "track/metrics_log.h"
#include "train/averages.h"
#include "train/checkpoint.h"
#include "train/trainer.h"

namespace millrace {
namespace {

/// What a run logged of its steps and epochs, by key, without times.
std::vector<std::vector<double>> logged_in(const std::filesystem::path& run) {
  const std::string text = read_text(run / "metrics.jsonl");
  std::vector<std::vector<double>> logged;
  for (const std::string key : {"step", "epoch", "loss", "lr", "train/loss", "train/accuracy", "gradient",
                                "test/accuracy", "test/log-loss"})
    logged.push_back(track::numbers_of(text, key));
  return logged;
}

enum class Lost { no, away, damaged };

/// Rows that at times cannot be read, or of which most are damaged.
class LostDataset final : public data::Dataset {
 public:
  LostDataset(std::shared_ptr<const data::Dataset> rows, std::shared_ptr<std::atomic<Lost>> lost)
      : Dataset("points"), rows_(std::move(rows)), lost_(std::move(lost)) {
    columns_ = rows_->columns();
  }
  int64_t count() const override { return rows_->count(); }
  data::Value read(int64_t index, size_t column) const override {
    const Lost lost = *lost_;
    if (lost == Lost::away) throw IoError("points: its server is away");
    if (lost == Lost::damaged && index > 20) throw InputError("points: it is no row");
    return rows_->read(index, column);
  }

 private:
  std::shared_ptr<const data::Dataset> rows_;
  std::shared_ptr<std::atomic<Lost>> lost_;
};

/// Points of a plane that a line parts into two classes; or as pictures of two pixels, of which damaged ones
/// are left out.
std::shared_ptr<const data::Dataset> points(bool pictures = false) {
  std::vector<std::vector<data::Value>> rows;
  for (int i = 0; i < 240; ++i) {
    const double across = i * 37 % 101, up = i * 59 % 97;
    const std::string side = across > up ? "below" : "above";
    if (pictures)
      rows.push_back({data::Pixels{1, 2, 1,
                                   data::Bytes(std::vector<uint8_t>{static_cast<uint8_t>(across),
                                                                    static_cast<uint8_t>(up)})},
                      side});
    else
      rows.push_back({across, up, side});
  }
  if (pictures)
    return data::memory_dataset(
        "points", {{"place", data::ColumnKind::picture}, {"side", data::ColumnKind::text}}, std::move(rows));
  return data::memory_dataset(
      "points",
      {{"across", data::ColumnKind::real}, {"up", data::ColumnKind::real}, {"side", data::ColumnKind::text}},
      std::move(rows));
}

/// Where a run loses data: in the test, or its second, of an epoch, or before that.
struct Loss {
  std::vector<std::string> keys;
  std::string set = "tests";  // or "points", of which it trains
  Lost how = Lost::away;
  int64_t epoch = 2, tests = 1;
  std::vector<std::string> longer = {};  // asked for when it goes on
};

train::Outcome go_on(const task::DataSets& sets, const std::filesystem::path& run,
                     const std::vector<std::string>& changes) {
  task::Recipe recipe = train::recipe_of((run / "recipe.toml").string(), {});
  recipe.data.sets = sets;
  train::Trainer trainer(recipe, {});
  trainer.resume(train::RunFolder::open(run), changes);
  return trainer.run();
}

train::Checkpoint checkpoint_of(const std::filesystem::path& run) {
  return train::read_checkpoint(train::list_checkpoints(train::RunFolder::open(run).checkpoints()).back());
}

void check_same(const std::filesystem::path& a, const std::filesystem::path& b) {
  CHECK(logged_in(a) == logged_in(b));
  const train::Checkpoint x = checkpoint_of(a), y = checkpoint_of(b);
  CHECK(x.step == y.step);
  CHECK(x.counters == y.counters);
  CHECK(x.sums == y.sums);
  REQUIRE(x.tensors.size() == y.tensors.size());
  for (size_t i = 0; i < x.tensors.size(); ++i) {
    CAPTURE(x.tensors[i].first);
    CHECK(x.tensors[i].second.identical(y.tensors[i].second));
  }
}

}  // namespace

TEST_CASE("a run whose data are lost at the end of an epoch goes on with its test") {
  const std::string early = "train.early_stopping=1", best = "train.keep_best=accuracy",
                    still = "train.optimizer={kind='sgd', lr=1e-9}",
                    plateau = "train.schedule={kind='plateau', metric='log-loss', patience=1}",
                    norms = "model={layers=['linear 16', 'batch-norm', 'relu', 'linear 2']}",
                    trees = "model={kind='boosting', rounds=4}";
  const std::vector<Loss> losses = {
      {{"train.swa=0.25", best, plateau}},
      {{"train.swa=0.25", best, plateau}, "tests", Lost::away, 4},
      {{"train.optimizer={kind='lbfgs'}"}},
      {{norms, "train.swa=0.25"}, "points"},
      {{norms, "train.swa=0.5"}, "points", Lost::away, 2, 1, {"train.epochs=8"}},
      {{"model={layers=['flatten', 'linear 2']}", best, plateau}, "tests", Lost::damaged},
      {{best, early, plateau, still}, "tests", Lost::away, 2, 2},
      {{best, early, plateau, still}, "tests", Lost::away, 2, 2, {"train.early_stopping=2"}},
      {{trees}, "tests", Lost::away, 4},
  };
  for (const Loss& loss : losses) {
    CAPTURE(fmt::format("{}", fmt::join(loss.keys, " ")));
    CAPTURE(loss.set);
    CAPTURE(loss.tests);
    const bool fitted = loss.keys[0] == trees;
    std::vector<std::string> keys = loss.keys;
    if (!fitted) keys.insert(keys.begin(), {"train.epochs=4", "train.batch=20"});
    task::Recipe recipe = task::parse_recipe(
        "[data]\ntrain = \"set:points\"\ntest = \"set:tests\"\ncache_mb = 0\n"
        "[output]\ncolumn = \"side\"\n[eval]\nbatch = 4\n",
        "points", keys);
    const auto lost = std::make_shared<std::atomic<Lost>>(Lost::no);
    const auto rows = points(loss.how == Lost::damaged);
    for (const std::string name : {"points", "tests"})
      recipe.data.sets[name] = name == loss.set ? std::make_shared<LostDataset>(rows, lost) : rows;
    const testing::TempFolder folder;
    const int64_t steps = fitted ? 1 : 12, end = loss.epoch * steps;
    int64_t step = 0, tests = 0;
    train::Observer observer;
    observer.step = [&](const train::Status& status) { step = status.step; };
    observer.stop = [&] { return !loss.longer.empty() && step == end; };
    {
      train::Trainer trainer(recipe, observer);
      trainer.begin(folder / "whole", "whole");
      trainer.run();
    }
    if (!loss.longer.empty()) go_on(recipe.data.sets, folder / "whole", loss.longer);

    step = 0;
    const auto lose = [&] {
      const bool now = loss.tests > 1         ? step == end && tests >= loss.tests - 1
                       : loss.set == "points" ? step == end
                                              : step > end - steps || (fitted && step == end - 1);
      if (now) *lost = loss.how;
    };
    observer.step = [&](const train::Status& status) {
      step = status.step;
      tests = 0;
      lose();
    };
    observer.busy = [&](const std::string& what, int64_t at, int64_t of) {
      if (what == "evaluating" && at == of) ++tests;
      lose();
    };
    {
      train::Trainer trainer(recipe, observer);
      trainer.begin(folder / "part", "part");
      CHECK_THROWS_WITH_AS(trainer.run(),
                           doctest::Contains(fmt::format("Everything up to step {} is saved", end).c_str()),
                           Error);
    }
    *lost = Lost::no;
    // As a run that goes on and is killed before its checkpoint leaves it.
    std::ofstream(folder / "part/metrics.jsonl", std::ios::app)
        << fmt::format("{{\"step\": {}, \"epoch\": {}, \"seconds\": 1}}\n", end, loss.epoch);
    CHECK(go_on(recipe.data.sets, folder / "part", loss.longer).finished);
    check_same(folder / "part", folder / "whole");
  }
}

TEST_CASE("statistics that cannot be measured anew stay what they are, and so does the place in the data") {
  const auto lost = std::make_shared<std::atomic<Lost>>(Lost::no);
  task::Recipe recipe = task::parse_recipe(
      "[data]\ntrain = \"set:points\"\ncache_mb = 0\n[output]\ncolumn = \"side\"\n[model]\n"
      "layers = [\"batch-norm\", \"linear 2\"]\n[train]\nbatch = 4\n",
      "points");
  recipe.data.sets["points"] = std::make_shared<LostDataset>(points(), lost);
  std::vector<std::string> notes;
  task::Opened opened = task::open_training(recipe, "", 0, nullptr, notes);
  task::make_network(opened.task);
  data::Feed& feed = *opened.training.feed;
  feed.next();
  const data::Cursor before = feed.cursor();
  train::Statistics statistics(opened.task, {feed.fields().begin(), feed.fields().end()},
                               {"0.running_mean", "0.running_var"}, 1);
  Array mean = opened.task.network->find("0.running_mean")->to_array();
  mean.edit<float>([](std::span<float> to) { std::fill(to.begin(), to.end(), 40.0F); });
  *lost = Lost::away;
  CHECK_THROWS_AS(statistics.measure(feed, 60), IoError);
  for (const double value : opened.task.network->find("0.running_mean")->to_array().to_doubles())
    CHECK(value == 40);
  CHECK(feed.cursor().epoch == before.epoch);
  CHECK(feed.cursor().position == before.position);
}

}  // namespace millrace
