// A database of runs that others write to, lock or spoil while a training goes on.
#include <doctest/doctest.h>
#include <sqlite3.h>

#include "support/temp_folder.h"
#include "track/log_kind.h"

using namespace millrace;
using namespace millrace::track;

namespace {

/// Another program at the same file.
class OtherProgram {
 public:
  explicit OtherProgram(const std::filesystem::path& path) {
    REQUIRE(::sqlite3_open(path.c_str(), &base_) == SQLITE_OK);
  }
  ~OtherProgram() { ::sqlite3_close(base_); }
  OtherProgram(const OtherProgram&) = delete;
  OtherProgram& operator=(const OtherProgram&) = delete;

  void run(const char* sql) { REQUIRE(::sqlite3_exec(base_, sql, nullptr, nullptr, nullptr) == SQLITE_OK); }
  /// The first column of all rows, with spaces between.
  std::string read(const char* sql) {
    std::string all;
    const auto add = [](void* to, int, char** values, char**) {
      std::string& text = *static_cast<std::string*>(to);
      text += (text.empty() ? "" : " ") + std::string(values[0] ? values[0] : "NULL");
      return 0;
    };
    REQUIRE(::sqlite3_exec(base_, sql, add, &all, nullptr) == SQLITE_OK);
    return all;
  }

 private:
  sqlite3* base_ = nullptr;
};

struct LoggedDatabase {
  explicit LoggedDatabase(int64_t resume_step = -1) { open(resume_step); }
  void open(int64_t resume_step) {
    LoggedRun run;
    run.folder = folder / "run";
    run.base = folder.path();
    run.recipe = "a = 1";
    run.params = {{"train.lr", "0.1"}};
    run.resume_step = resume_step;
    run.message = [this](const std::string& text) { messages.push_back(text); };
    log = open_log("sqlite all.sqlite", run);
  }
  void step(int64_t step, double time, double value) { log->write({steps, step, time, {value, 7}}); }
  void epoch(int64_t step, double time, double value) { log->write({epochs, step, time, {1, value, 3}}); }

  testing::TempFolder folder;
  std::vector<std::string> messages;
  std::unique_ptr<Sink> log;
  std::shared_ptr<const Names> steps = std::make_shared<Names>(
                                   Names{{"loss", "seconds"}, {"train/loss", ""}, false}),
                               epochs = std::make_shared<Names>(
                                   Names{{"epoch", "loss", "test/loss"}, {"epoch", "", "test/loss"}, true});
};

}  // namespace

TEST_CASE(
    "a database of runs has curves of steps and of epochs, and forgets what a resumed run left behind") {
  LoggedDatabase run;
  run.step(1, 100, 0.5);
  run.step(2, 100.05, 0.4);  // a tenth of a second has to lie between
  run.step(3, 101, NAN);
  run.epoch(3, 101, 0.25);
  run.log->flush();
  OtherProgram other(run.folder / "all.sqlite");
  CHECK(other.read(
            "SELECT name || '@' || step || '=' || ifnull(value, 'none') FROM metrics ORDER BY name, step") ==
        "epoch/loss@3=0.25 test/loss@3=3.0 train/loss@1=0.5 train/loss@3=none");
  CHECK(other.read("SELECT state FROM runs") == "running");
  CHECK(other.read("SELECT key || '=' || value FROM params") == "train.lr=0.1");
  run.log->finish("stopped");
  CHECK(other.read("SELECT state FROM runs") == "stopped");
  run.log.reset();
  run.open(2);
  CHECK(other.read("SELECT count(*) FROM runs") == "1");
  CHECK(other.read("SELECT state FROM runs") == "running");
  CHECK(other.read("SELECT step FROM metrics") == "1");
  CHECK(run.messages.empty());
}

TEST_CASE("a database that cannot be written to is told once and tried again later, and nothing is lost") {
  LoggedDatabase run;
  OtherProgram other(run.folder / "all.sqlite");
  other.run("ALTER TABLE metrics RENAME TO hidden");  // SQLite says so at once, as of a full disk
  run.step(1, 100, 0.5);
  run.log->flush();
  REQUIRE(run.messages.size() == 1);
  CHECK(run.messages[0].find("all.sqlite: cannot write the database of runs: no such table") !=
        std::string::npos);
  CHECK(run.messages[0].find("training goes on") != std::string::npos);
  run.step(2, 111, 0.4);
  run.log->flush();
  CHECK(run.messages.size() == 1);
  other.run("ALTER TABLE hidden RENAME TO metrics");
  run.step(3, 120, 0.3);
  run.log->flush();  // ten seconds after the last try, not before
  CHECK(other.read("SELECT step FROM metrics").empty());
  run.step(4, 121.5, 0.2);
  run.log->flush();
  CHECK(other.read("SELECT step FROM metrics ORDER BY step") == "1 2 3 4");
  // It has been there again: a second time is told, too.
  other.run("ALTER TABLE metrics RENAME TO hidden");
  run.step(5, 140, 0.1);
  run.log->flush();
  CHECK(run.messages.size() == 2);
  run.log->finish("finished");
  REQUIRE(run.messages.size() == 3);
  CHECK(run.messages[2].find("all.sqlite: 1 points are not there, but all are in metrics.jsonl") !=
        std::string::npos);
}

TEST_CASE("where only the state of a run cannot be written no points are missed") {
  LoggedDatabase run;
  run.step(1, 100, 0.5);
  run.log->flush();
  OtherProgram other(run.folder / "all.sqlite");
  other.run("ALTER TABLE runs RENAME TO hidden");
  run.log->finish("finished");
  REQUIRE(run.messages.size() == 1);
  CHECK(run.messages[0].find("no such table") != std::string::npos);
}
