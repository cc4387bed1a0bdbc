#include <doctest/doctest.h>
#include <string>

#include "base/file.h"
#include "base/format.h"
#include "support/graphs.h"
#include "support/temp_folder.h"
#include "train/checkpoint.h"
#include "train/trainer.h"

using namespace millrace;

namespace {

/// A table of 1,024 rows of numbers with two classes, and a recipe that trains on it with evaluation and
/// checkpoints.
std::string write_recipe(const testing::TempFolder& folder, const std::string& precision, int lookahead) {
  std::string rows = "a,b,c,label\n";
  for (int i = 0; i < 1024; ++i)
    rows += fmt::format("{},{},{},{}\n", i % 7, i % 11 * 0.5, i % 13 - 6, i % 7 + i % 11 > 8 ? "yes" : "no");
  write_file(folder / "rows.csv", rows);
  write_file(folder / "recipe.toml",
             fmt::format("[data]\ntrain = \"{0}\"\ntest = \"{0}\"\n[input]\nkind = \"table\"\n"
                         "[output]\nkind = \"class\"\ncolumn = \"label\"\n"
                         "[model]\nkind = \"table\"\nwidth = 32\ndepth = 2\n"
                         "[train]\nepochs = 3\nbatch = 512\nprecision = \"{1}\"\nlookahead = {2}\n"
                         "optimizer = {{ kind = \"adamw\", lr = 1e-2 }}\n",
                         (folder / "rows.csv").string(), precision, lookahead));
  return (folder / "recipe.toml").string();
}

/// Trains, with an interruption after step `stop` when it is not 0; returns how often copies were made by the
/// last trainer.
int64_t run_recipe(const std::string& recipe, const std::filesystem::path& out, int64_t stop) {
  train::Observer observer;
  int64_t step = 0;
  observer.step = [&](const train::Status& status) { step = status.step; };
  if (stop > 0) {
    observer.stop = [&] { return step >= stop; };
    {
      train::Trainer first(train::recipe_of(recipe, {}), observer);
      first.begin(out, "run");
      CHECK_FALSE(first.run().finished);
    }
    observer.stop = [] { return false; };
    train::Trainer second(train::recipe_of(recipe, {}), observer);
    second.resume(train::RunFolder::open(out));
    CHECK(second.run().finished);
    return second.program().times_copied();
  }
  train::Trainer trainer(train::recipe_of(recipe, {}), observer);
  trainer.begin(out, "run");
  CHECK(trainer.run().finished);
  int64_t kept = 0;
  for (const CopyInfo& copy : trainer.program().copies()) kept += copy.why_not.empty() ? 1 : 0;
  if (trainer.program().precision() != "fp32") CHECK(kept > 0);
  return trainer.program().times_copied();
}

}  // namespace

TEST_CASE("a run makes copies of parameters once, and again after lookahead; a resumed run ends alike") {
  for (const std::string& precision : test::precisions_here({"fp16", "bf16"}))
    for (const int lookahead : {0, 4}) {
      CAPTURE(precision);
      CAPTURE(lookahead);
      const testing::TempFolder folder;
      const std::string recipe = write_recipe(folder, precision, lookahead);
      const int64_t times = run_recipe(recipe, folder / "whole", 0);
      CHECK(times <= (lookahead ? 2 : 1));  // of 6 steps; the last lookahead comes behind the last of them
      if (precision == "fp16") CHECK(times == (lookahead ? 2 : 1));
      run_recipe(recipe, folder / "cut", 3);
      const auto last = [&](const char* run) {
        return train::list_checkpoints(train::RunFolder::open(folder / run).checkpoints()).back();
      };
      const train::Checkpoint a = train::read_checkpoint(last("whole")),
                              b = train::read_checkpoint(last("cut"));
      REQUIRE(a.tensors.size() == b.tensors.size());
      for (size_t i = 0; i < a.tensors.size(); ++i) {
        CAPTURE(a.tensors[i].first);
        CHECK(a.tensors[i].first.find("for products") == std::string::npos);
        CHECK(a.tensors[i].second.identical(b.tensors[i].second));
      }
    }
}
