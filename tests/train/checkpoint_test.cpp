#include "train/checkpoint.h"

#include <algorithm>
#include <csignal>
#include <doctest/doctest.h>
#include <sys/resource.h>

#include "base/file.h"
#include "support/temp_folder.h"
#include "train/run_folder.h"

using namespace millrace;
using namespace millrace::train;

namespace {

Checkpoint example(int64_t step) {
  Checkpoint c;
  c.step = step;
  c.counters = {{"epoch", 2}, {"data.position", 1 << 20}};
  c.sums = {{"loss", 0.1 + 0.2}, {"tiny", 5e-324}};
  c.choices = {{"conv2d f32[8,3,32,32]", "onednn"}};
  c.encoding = "{\"inputs\": [\"\u00e9 \\n\"], \"outputs\": [{\"classes\": [\"a b\", \"\"]}]}";
  c.tensors.emplace_back("model.w",
                         Array::of(f32, {2, 2}, std::vector<double>{1, 2, 3, static_cast<double>(step)}));
  c.tensors.emplace_back("optimizer.w.momentum", Array::full(f32, {100, 100}, 0.25));
  return c;
}

void damage(const std::filesystem::path& path) {
  std::vector<uint8_t> bytes = read_file(path);
  bytes[bytes.size() / 2] ^= 0x10;
  write_file(path, bytes);
}

}  // namespace

TEST_CASE("a checkpoint gives back every number to the last bit") {
  testing::TempFolder folder;
  write_checkpoint(folder / "c", example(7));
  const Checkpoint c = read_checkpoint(folder / "c"), expected = example(7);
  CHECK(c.step == 7);
  CHECK(c.counters == expected.counters);
  CHECK(c.sums == expected.sums);
  CHECK(c.choices == expected.choices);
  CHECK(c.encoding == expected.encoding);
  REQUIRE(c.tensors.size() == 2);
  for (const auto& [name, array] : expected.tensors) {
    const auto found =
        std::find_if(c.tensors.begin(), c.tensors.end(), [&](const auto& t) { return t.first == name; });
    REQUIRE(found != c.tensors.end());
    CHECK(found->second.identical(array));
  }
}

TEST_CASE("only the newest checkpoints are kept and the newest sound one is loaded") {
  testing::TempFolder folder;
  CHECK(!load_newest_checkpoint(folder.path()));
  for (const int64_t step : {9, 100, 11}) save_checkpoint(folder.path(), example(step), 2);
  CHECK(list_checkpoints(folder.path()).size() == 2);
  CHECK(load_newest_checkpoint(folder.path())->checkpoint.step == 100);

  damage(folder / checkpoint_name(100));
  const auto loaded = load_newest_checkpoint(folder.path());
  CHECK(loaded->checkpoint.step == 11);
  REQUIRE(loaded->warnings.size() == 1);
  CHECK(loaded->warnings[0].find("step-00000100") != std::string::npos);

  std::filesystem::resize_file(folder / checkpoint_name(11), 100);
  CHECK_THROWS_WITH_AS(load_newest_checkpoint(folder.path()), doctest::Contains("no checkpoint is sound"),
                       IoError);
}

TEST_CASE("a checkpoint of another schema is refused by name, not passed over") {
  testing::TempFolder folder;
  save_checkpoint(folder.path(), example(1), 2);
  track::write_safetensors(folder / checkpoint_name(2), {},
                           {{"format", "millrace-checkpoint"}, {"schema", "99"}});
  CHECK_THROWS_WITH_AS(load_newest_checkpoint(folder.path()), doctest::Contains("schema 99 is newer"),
                       SchemaError);
  track::write_safetensors(folder / checkpoint_name(2), {}, {{"format", "other"}});
  CHECK(load_newest_checkpoint(folder.path())->checkpoint.step == 1);
}

TEST_CASE("when there is no room for a checkpoint the older one stays and the error says so") {
  testing::TempFolder folder;
  save_checkpoint(folder.path(), example(1), 1);
  struct rlimit before {};
  getrlimit(RLIMIT_FSIZE, &before);
  struct rlimit small = before;
  small.rlim_cur = 10'000;
  std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  CHECK_THROWS_WITH_AS(save_checkpoint(folder.path(), example(2), 1),
                       doctest::Contains("step-00000001.safetensors is intact"), IoError);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, SIG_DFL);
  CHECK(load_newest_checkpoint(folder.path())->checkpoint.step == 1);
}

TEST_CASE("run folders are numbered, never overwritten, and their recipe reads back") {
  testing::TempFolder folder;
  task::Recipe recipe;
  recipe.model.kind = "lenet";
  const RunFolder run = RunFolder::create(folder / "a", "x", recipe);
  CHECK(task::load_recipe(run.recipe()).model.kind == "lenet");
  CHECK_THROWS_WITH_AS(RunFolder::create(folder / "a", "x", recipe), doctest::Contains("--resume"),
                       InputError);
  CHECK(RunFolder::open(folder / "a").path() == folder / "a");
  CHECK_THROWS_WITH_AS(RunFolder::open(folder / "a").lock(), doctest::Contains("in use"), InputError);
  { const RunFolder ended = RunFolder::create(folder / "c", "x", recipe); }
  RunFolder::open(folder / "c").lock();
  CHECK_THROWS_WITH_AS(RunFolder::open(folder / "b"), doctest::Contains("did you mean"), InputError);
  const auto here = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  CHECK(RunFolder::create("", "letters", recipe).path() == "runs/letters-1");
  CHECK(RunFolder::create("", "letters", recipe).path() == "runs/letters-2");
  std::filesystem::current_path(here);
}
