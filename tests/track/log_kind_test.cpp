#include "track/log_kind.h"

#include <condition_variable>
#include <doctest/doctest.h>
#include <mutex>

#include <millrace/error.h>

#include "track/aside.h"

using namespace millrace::track;

TEST_CASE("slow logs get ten steps a second, longer records at 200 values a second, and all epochs") {
  const auto steps = std::make_shared<const Names>(), details = std::make_shared<const Names>(),
             epochs = std::make_shared<const Names>(Names{{}, {}, true});
  Thinned thinned;
  int counts[3] = {};
  // Two seconds of a thousand steps each, with details of every tenth.
  for (int i = 0; i < 2000; ++i) {
    const double time = 1e9 + i / 1000.0;
    counts[0] += thinned.wanted({steps, i, time, {1, 2, 3}});
    if (i % 10 == 0) counts[1] += thinned.wanted({details, i, time, std::vector<double>(100)});
    if (i % 500 == 0) counts[2] += thinned.wanted({epochs, i, time, std::vector<double>(100)});
  }
  CHECK(counts[0] >= 18);
  CHECK(counts[0] <= 20);
  CHECK(counts[1] == 4);
  CHECK(counts[2] == 4);
}

TEST_CASE("a log is a name and its settings as words") {
  CHECK(log_usages() == std::vector<std::string>{"mlflow URL [EXPERIMENT]", "sqlite FILE"});
  for (const char* log : {"sqlite all runs.sqlite", "mlflow http://a", "mlflow https://a.b mine"})
    CHECK_NOTHROW(check_log(log));
  CHECK_THROWS_WITH_AS(check_log("sqlite"), "log \"sqlite\": FILE is missing; write it as sqlite FILE",
                       millrace::InputError);
  CHECK_THROWS_WITH_AS(check_log("mlflow http://a b c"),
                       "log \"mlflow http://a b c\": \"c\" is too much; write it as mlflow URL [EXPERIMENT]",
                       millrace::InputError);
  CHECK_THROWS_WITH_AS(check_log(""), doctest::Contains("there is no log ''"), millrace::InputError);
}

TEST_CASE("a log aside holds up nobody until it is finished") {
  struct Gate {
    std::mutex mutex;
    std::condition_variable opened;
    bool open = false;
    std::vector<int64_t> steps;
    std::string state;
  } gate;
  struct Hanging final : Sink {
    Gate& gate;
    explicit Hanging(Gate& own) : gate(own) {}
    void write(const Record& record) override {
      std::unique_lock lock(gate.mutex);
      gate.opened.wait(lock, [&] { return gate.open; });
      gate.steps.push_back(record.step);
    }
    void flush() override {}
    void finish(const std::string& state) override { gate.state = state; }
  };
  std::vector<std::unique_ptr<Sink>> logs;
  logs.push_back(std::make_unique<Aside>(std::make_unique<Hanging>(gate)));
  Recorder recorder(std::move(logs));
  const auto epochs = std::make_shared<const Names>(Names{{}, {}, true});
  for (int64_t step = 0; step < 100; ++step) recorder.add({epochs, step, 0, {}});
  recorder.flush();  // as a checkpoint does
  CHECK(gate.steps.empty());
  {
    const std::lock_guard lock(gate.mutex);
    gate.open = true;
  }
  gate.opened.notify_all();
  recorder.finish("finished");
  CHECK(gate.steps.size() == 100);
  CHECK(gate.state == "finished");
}
