#include <doctest/doctest.h>
#include <set>
#include <string>

#include "base/file.h"
#include "base/format.h"
#include "support/temp_folder.h"
#include "train/trainer.h"

using namespace millrace;

namespace {

/// 40 rows in order, five batches an epoch.
std::string write_small_recipe(const testing::TempFolder& folder) {
  std::string rows = "a,b,label\n";
  for (int i = 0; i < 40; ++i) rows += fmt::format("{},{},{}\n", i % 7, i % 11 * 0.5, i % 3 ? "yes" : "no");
  write_file(folder / "rows.csv", rows);
  write_file(folder / "recipe.toml",
             fmt::format("[data]\ntrain = \"{}\"\norder = \"sequential\"\n[input]\nkind = \"table\"\n"
                         "[output]\nkind = \"class\"\ncolumn = \"label\"\n"
                         "[model]\nkind = \"table\"\nwidth = 16\ndepth = 1\ndropout = 0.5\n"
                         "[train]\nepochs = 0.5\nbatch = 8\nseed = 1\n"
                         "optimizer = {{ kind = \"sgd\", lr = 1.0, momentum = 0.0 }}\n",
                         (folder / "rows.csv").string()));
  return (folder / "recipe.toml").string();
}

}  // namespace

TEST_CASE("epochs are whole steps, halves of them more; values are clipped as train.clip_value says") {
  const testing::TempFolder folder;
  const std::string recipe = write_small_recipe(folder);
  std::set<double> ends;
  for (const std::string clip : {"0", "1e-9"}) {
    std::vector<double> told;
    train::Observer observer;
    observer.step = [&](const train::Status& status) { told.push_back(status.loss); };
    const std::vector<std::string> changes = {"train.clip_value=" + clip};
    train::Trainer trainer(train::recipe_of(recipe, changes), observer);
    trainer.begin(folder / ("clip " + clip), "run");
    CHECK(trainer.run().finished);
    CHECK(told.size() == 3);  // of 2.5
    CHECK(ends.insert(told.back()).second);
  }
}

TEST_CASE("what a step draws depends on train.seed") {
  const testing::TempFolder folder;
  const std::string recipe = write_small_recipe(folder);
  train::Observer observer;
  observer.stop = [] { return true; };
  {
    train::Trainer trainer(train::recipe_of(recipe), observer);
    trainer.begin(folder / "run", "run");
  }
  // The same weights, and other seeds for all that follows.
  observer.stop = [] { return false; };
  std::set<double> firsts;
  const auto text = read_text(folder / "run/recipe.toml");
  const size_t at = text.find("seed = 1\n");
  REQUIRE(at != std::string::npos);
  for (const char* seed : {"1", "2", "3"}) {
    const auto own = folder / ("seed " + std::string(seed));
    std::filesystem::copy(folder / "run", own, std::filesystem::copy_options::recursive);
    write_file(own / "recipe.toml", text.substr(0, at) + "seed = " + seed + text.substr(at + 8));
    double first = 0;
    observer.step = [&](const train::Status& status) {
      if (status.step == 1) first = status.loss;
    };
    train::Trainer trainer(train::recipe_of(own), observer);
    trainer.resume(train::RunFolder::open(own));
    CHECK(trainer.run().finished);
    CHECK(firsts.insert(first).second);
  }
}
