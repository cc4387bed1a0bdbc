#include "track/recorder.h"

#include <atomic>
#include <condition_variable>
#include <doctest/doctest.h>
#include <mutex>
#include <thread>

#include <millrace/error.h>

using namespace millrace;
using namespace millrace::track;

namespace {

struct Seen {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<int64_t> steps;
  int64_t flushed = 0;
  std::string state;
  bool held = false;  // write() waits
};

class Listener final : public Sink {
 public:
  explicit Listener(std::shared_ptr<Seen> seen, int64_t fails_at = -1)
      : seen_(std::move(seen)), fails_at_(fails_at) {}
  void write(const Record& record) override {
    std::unique_lock lock(seen_->mutex);
    seen_->changed.wait(lock, [&] { return !seen_->held; });
    if (record.step == fails_at_) throw IoError("the disk is full");
    seen_->steps.push_back(record.step);
  }
  void flush() override {
    const std::lock_guard lock(seen_->mutex);
    seen_->flushed = static_cast<int64_t>(seen_->steps.size());
  }
  void finish(const std::string& state) override { seen_->state = state; }

 private:
  std::shared_ptr<Seen> seen_;
  int64_t fails_at_;
};

std::vector<std::unique_ptr<Sink>> listeners(std::initializer_list<std::shared_ptr<Seen>> all) {
  std::vector<std::unique_ptr<Sink>> sinks;
  for (const auto& seen : all) sinks.push_back(std::make_unique<Listener>(seen));
  return sinks;
}

const auto loss = std::make_shared<const Names>(Names{{"loss"}, {"train/loss"}});

}  // namespace

TEST_CASE("all records arrive at all logs, in order, and are there after flush()") {
  const auto a = std::make_shared<Seen>(), b = std::make_shared<Seen>();
  {
    Recorder recorder(listeners({a, b}));
    for (int64_t step = 0; step < 1000; ++step) recorder.add({loss, step, 0, {0.5}});
    recorder.flush();
    for (const auto& seen : {a, b}) {
      REQUIRE(seen->steps.size() == 1000);
      CHECK(seen->flushed == 1000);
      for (int64_t step = 0; step < 1000; ++step) REQUIRE(seen->steps[static_cast<size_t>(step)] == step);
    }
    recorder.add({loss, 1000, 0, {0.5}});
    recorder.finish("finished");
    CHECK(a->state == "finished");
    recorder.add({loss, 1001, 0, {0.5}});
  }
  CHECK(a->steps.size() == 1002);  // what was left when it went
  CHECK(b->flushed == 1002);
}

TEST_CASE("a log that stalls does not hold up who adds") {
  const auto seen = std::make_shared<Seen>();
  seen->held = true;
  Recorder recorder(listeners({seen}));
  for (int64_t step = 0; step < 5000; ++step) recorder.add({loss, step, 0, {0.5}});
  CHECK(seen->steps.empty());
  {
    const std::lock_guard lock(seen->mutex);
    seen->held = false;
  }
  seen->changed.notify_all();
  recorder.flush();
  CHECK(seen->steps.size() == 5000);
}

TEST_CASE("more than may wait waits, and nothing is dropped") {
  const auto seen = std::make_shared<Seen>();
  seen->held = true;
  Recorder recorder(listeners({seen}));
  const auto all = static_cast<int64_t>(3 * Recorder::most_waiting);
  std::atomic<int64_t> added = 0;
  std::thread training([&] {
    for (int64_t step = 0; step < all; ++step, ++added) recorder.add({loss, step, 0, {}});
  });
  // The first round may have been taken before it was held up, so one more may have been let in.
  while (added < static_cast<int64_t>(Recorder::most_waiting)) std::this_thread::yield();
  CHECK(added <= static_cast<int64_t>(2 * Recorder::most_waiting));
  {
    const std::lock_guard lock(seen->mutex);
    seen->held = false;
  }
  seen->changed.notify_all();
  training.join();
  recorder.flush();
  CHECK(static_cast<int64_t>(seen->steps.size()) == all);
}

TEST_CASE("what fails is told to who adds or waits, once, and other logs get all the same") {
  const auto bad = std::make_shared<Seen>(), good = std::make_shared<Seen>();
  std::vector<std::unique_ptr<Sink>> sinks;
  sinks.push_back(std::make_unique<Listener>(bad, 3));
  sinks.push_back(std::make_unique<Listener>(good));
  Recorder recorder(std::move(sinks));
  for (int64_t step = 0; step < 3; ++step) recorder.add({loss, step, 0, {}});
  recorder.flush();
  recorder.add({loss, 3, 0, {}});
  CHECK_THROWS_WITH_AS(recorder.flush(), "the disk is full", IoError);
  CHECK_NOTHROW(recorder.flush());
  CHECK(good->steps.size() == 4);
}

TEST_CASE(
    "what is shown is made by the thread that writes, once for all logs, in its place among the steps") {
  struct Viewer final : Sink {
    std::vector<std::string>& seen;
    explicit Viewer(std::vector<std::string>& all) : seen(all) {}
    void write(const Record& record) override { seen.push_back(std::to_string(record.step)); }
    void show(const Exhibit& exhibit, int64_t step, double /*time*/) override {
      seen.push_back(exhibit.tag + std::to_string(step));
    }
    void flush() override {}
  };
  std::vector<std::string> a, b;
  std::vector<std::unique_ptr<Sink>> sinks;
  sinks.push_back(std::make_unique<Viewer>(a));
  sinks.push_back(std::make_unique<Viewer>(b));
  std::thread::id maker;
  int made = 0;
  Recorder recorder(std::move(sinks));
  recorder.add({loss, 1, 0, {0.5}});
  recorder.add({nullptr, 1, 0, {}, [&] {
                  maker = std::this_thread::get_id();
                  ++made;
                  return std::vector<Exhibit>{{"x", "", "", {}, {}}, {"y", "", "", {}, {}}};
                }});
  recorder.add({loss, 2, 0, {0.5}});
  recorder.flush();
  CHECK(a == std::vector<std::string>{"1", "x1", "y1", "2"});
  CHECK(a == b);
  CHECK(made == 1);
  CHECK(maker != std::this_thread::get_id());
  recorder.add({nullptr, 3, 0, {}, []() -> std::vector<Exhibit> { throw InputError("no picture"); }});
  CHECK_THROWS_WITH_AS(recorder.flush(), "no picture", InputError);
  recorder.add({loss, 4, 0, {0.5}});
  recorder.flush();
  CHECK(a.back() == "4");
}
