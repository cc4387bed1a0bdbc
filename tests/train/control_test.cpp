#include "train/control.h"

#include <algorithm>
#include <csignal>
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <thread>

#include <millrace/error.h>

#include "base/file.h"
#include "support/disk_calls.h"
#include "support/temp_folder.h"

using namespace millrace;
using namespace millrace::train;
using namespace millrace::testing;
using namespace std::chrono_literals;

namespace {

/// How long to wait for another thread: so long that it only passes when the thread will never come.
constexpr auto kPatience = 120s;

std::vector<Change> parse(const std::vector<std::string>& texts) { return parse_changes(texts); }

struct ControlledRun {
  TempFolder folder;
  RunFolder run = RunFolder::create(folder / "run", "run", task::Recipe());
};

/// Takes requests, as a trainer does between steps, until one is answered.
std::vector<Change> take_one(Control& control, int64_t step, const Control::Apply& apply) {
  std::vector<Change> taken;
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (taken.empty() && std::chrono::steady_clock::now() < end) {
    taken = control.take(step, apply);
    std::this_thread::sleep_for(10ms);
  }
  return taken;
}

}  // namespace

TEST_CASE("changes are checked as a recipe's keys are, and only some can be made") {
  CHECK(parse({"train.lr_scale=0.5", "train.steps=7"}) ==
        std::vector<Change>{{"train.lr_scale", 0.5}, {"train.steps", 7.0}});
  CHECK_THROWS_WITH_AS(parse({"train.lr_scale=-1"}), doctest::Contains("must be from 0 to"), InputError);
  CHECK_THROWS_WITH_AS(parse({"train.steps=1.5"}), doctest::Contains("whole number"), InputError);
  CHECK_THROWS_WITH_AS(parse({"train.lr_scal=1"}), doctest::Contains("train.lr_scale"), InputError);
  CHECK_THROWS_WITH_AS(parse({"train.batch=8"}),
                       doctest::Contains("train.batch cannot change while training runs; what can: train."),
                       InputError);
  CHECK_THROWS_WITH_AS(parse({"data.where=width > 3"}), doctest::Contains("cannot change"), InputError);
  CHECK_THROWS_AS(parse({"train.steps"}), InputError);
  CHECK_THROWS_WITH_AS(parse({"train.steps=5", "train.steps=6"}), doctest::Contains("twice"), InputError);

  task::Recipe recipe;
  recipe.train.steps = 40;
  apply_changes(recipe, std::vector<Change>{{"train.epochs", 2.5}, {"train.checkpoint_steps", 3.0}});
  CHECK(recipe.train.epochs == 2.5);
  CHECK(recipe.train.steps == 0);
  CHECK(recipe.train.checkpoint_steps == 3);
  CHECK_THROWS_AS(apply_changes(recipe, std::vector<Change>{{"train.seed", 3.0}}), InputError);
}

TEST_CASE("every key that can change is a number of the recipe") {
  for (const std::string& key : control_keys())
    CHECK(parse({key + "=1"}).at(0).value == std::variant<double, std::string>(1.0));
}

TEST_CASE("a request is taken, noted, and replayed at its step") {
  ControlledRun r;
  task::Recipe recipe;
  const Control::Apply apply = [&](int64_t, std::span<const Change> changes) {
    apply_changes(recipe, changes);
    if (recipe.train.steps == 13) throw InputError("thirteen is too few");
  };
  {
    Control control(r.run);
    int64_t answered = -1;
    std::thread ctl(
        [&] { answered = request_changes(r.run, parse({"train.lr_scale=0.1"}), kPatience.count()); });
    CHECK(take_one(control, 42, apply) == parse({"train.lr_scale=0.1"}));
    ctl.join();
    CHECK(answered == 42);
    CHECK(recipe.train.lr_scale == 0.1);

    // What the trainer refuses is told, and not noted.
    std::string refusal;
    std::atomic<bool> refused{false};
    std::thread second([&] {
      try {
        (void)request_changes(r.run, parse({"train.steps=13"}), kPatience.count());
      } catch (const InputError& error) {
        refusal = error.what();
      }
      refused = true;
    });
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (!refused && std::chrono::steady_clock::now() < end) {
      CHECK(control.take(43, apply).empty());
      std::this_thread::sleep_for(5ms);
    }
    second.join();
    CHECK(refusal.find("thirteen is too few") != std::string::npos);
  }
  CHECK(std::filesystem::is_empty(r.run.requests()));
  // A kill cut the last line off.
  write_file(r.run.journal(), read_text(r.run.journal()) + "{\"step\": 44, \"ke");
  Control again(r.run);
  CHECK(read_text(r.run.journal()).ends_with("}\n"));
  const auto entries = read_journal(r.run.journal());
  REQUIRE(entries.size() == 1);
  CHECK(entries[0].step == 42);
  CHECK(entries[0].time.size() == 20);
  std::vector<std::pair<int64_t, double>> seen;
  const Control::Apply note = [&](int64_t at, std::span<const Change> changes) {
    for (const Change& change : changes) seen.emplace_back(at, std::get<double>(change.value));
  };
  again.replay(41, note);
  CHECK(seen.empty());
  again.replay(42, note);
  CHECK(seen.size() == 1);
  again.replay(60, note);
  again.replay(61, note);
  CHECK(seen == std::vector<std::pair<int64_t, double>>{{42, 0.1}});
}

TEST_CASE("requests that nobody takes are withdrawn; a new training clears what is left") {
  ControlledRun r;
  CHECK_THROWS_WITH_AS(request_changes(r.run, parse({"train.steps=9"}), 0.2),
                       doctest::Contains("has not taken the request"), IoError);
  CHECK(std::filesystem::is_empty(r.run.requests()));
  write_file(r.run.requests() / "0001.json", "{\"train.steps\": 9}");
  write_file(r.run.requests() / "0002.answer", "{}");
  Control control(r.run);
  CHECK(std::filesystem::is_empty(r.run.requests()));

  // Whoever writes there: nonsense is refused, not a reason to stop.
  for (const char* text : {"", "[]", "{}", "{\"train.steps\": \"x\"}", "{\"train.seed\": 3}", "\xff\xfe"}) {
    Control fresh(r.run);
    write_file(r.run.requests() / "0007.json", text);
    int calls = 0;
    CHECK(fresh.take(5, [&](int64_t, std::span<const Change>) { ++calls; }).empty());
    CHECK(calls == 0);
    CHECK(read_text(r.run.requests() / "0007.answer").find("error") != std::string::npos);
  }
  CHECK(!std::filesystem::exists(r.run.journal()));
}

TEST_CASE("without a training in the folder a request is refused") {
  TempFolder folder;
  { (void)RunFolder::create(folder / "run", "run", task::Recipe()); }
  const RunFolder run = RunFolder::open(folder / "run");
  CHECK(!run.in_use());
  CHECK_THROWS_WITH_AS(request_changes(run, parse({"train.steps=9"}), 5),
                       doctest::Contains("no training runs in"), InputError);
}

TEST_CASE("what a full disk takes of a change is not in the journal") {
  ControlledRun run;
  const auto nothing = [](int64_t, std::span<const Change>) {};
  const std::string request = "{\"train.lr_scale\": 0.5, \"train.steps\": 9}";
  Control control(run.run);
  write_file(run.run.requests() / "0001.json", request);
  const auto calls = disk_calls([&] { REQUIRE(take_one(control, 3, nothing).size() == 2); });
  // The journal is on the disk, and then the answer.
  CHECK(std::count(calls.begin(), calls.end(), "flush file") == 2);
  const std::string before = read_text(run.run.journal());
  write_file(run.run.requests() / "0002.json", request);
  // The first of the two lines, and a part of the second.
  rlimit usual{}, little{};
  ::getrlimit(RLIMIT_FSIZE, &usual);
  little = usual;
  little.rlim_cur = before.size() + before.size() * 3 / 4;
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  std::this_thread::sleep_for(250ms);  // between two looks
  ::setrlimit(RLIMIT_FSIZE, &little);
  std::string why;
  try {
    control.take(4, nothing);
  } catch (const IoError& error) {
    why = error.what();
  }
  ::setrlimit(RLIMIT_FSIZE, &usual);
  std::signal(SIGXFSZ, handler);
  CHECK(why.find("cannot write the journal") != std::string::npos);
  CHECK(read_text(run.run.journal()) == before);
}

TEST_CASE("a journal that is none is named by its line") {
  TempFolder folder;
  const auto path = folder / "control.jsonl";
  write_file(path, "{\"step\": 1, \"key\": \"train.steps\", \"value\": 5, \"time\": \"\"}\n{\"step\": 2}\n");
  CHECK_THROWS_WITH_AS(read_journal(path), doctest::Contains("control.jsonl:2: "), InputError);
  for (const std::string step : {"1e300", "-1", "1.5", "\"1\""}) {
    const std::string line =
        "{\"step\": " + step + ", \"key\": \"train.steps\", \"value\": 5, \"time\": \"\"}\n";
    CHECK_THROWS_WITH_AS((void)parse_journal(line, "j"), doctest::Contains("j:1: a step is a whole number"),
                         InputError);
  }
  write_file(path, "{\"step\": 1, \"key\": \"train.seed\", \"value\": 5, \"time\": \"\"}\n");
  CHECK_THROWS_WITH_AS(read_journal(path), doctest::Contains("train.seed cannot change"), InputError);
}

TEST_CASE("a text that is empty is a text, in the journal and for the recipe") {
  const std::string line = R"({"step": 5, "key": "train.keep_best", "value": "", "time": ""})";
  const auto entries = parse_journal(line + "\n", "j");
  REQUIRE(entries.size() == 1);
  CHECK(entries[0].change.value == std::variant<double, std::string>(std::string()));
  CHECK(entries[0].change.spoken() == "train.keep_best = \"\"");
  task::Recipe recipe;
  recipe.train.keep_best = "accuracy";
  apply_changes(recipe, std::vector{entries[0].change});
  CHECK(recipe.train.keep_best.empty());
}
