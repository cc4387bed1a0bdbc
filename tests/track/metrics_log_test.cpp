#include "track/metrics_log.h"

#include <cmath>
#include <doctest/doctest.h>

#include "base/file.h"
#include "support/temp_folder.h"

using namespace millrace;
using namespace millrace::track;

TEST_CASE("metric lines are JSON: doubles to the last bit, NaN as null, strings escaped") {
  CHECK(json_line({{"step", int64_t{3}}, {"loss", 0.1}, {"bad", NAN}, {"note", std::string("a \"b\"\n")}}) ==
        R"({"step": 3, "loss": 0.1, "bad": null, "note": "a \"b\"\n"})");
  CHECK(json_line({{"x", 0.1 + 0.2}}) == R"({"x": 0.30000000000000004})");
  CHECK(json_line({{"x", 2.0}}) == R"({"x": 2})");
}

TEST_CASE("the numbers under a key are found, whatever stands around them") {
  const std::string lines =
      "{\"step\": 1, \"a\": 0.5, \"b\": 2}\n{\"step\": 2, \"a\": -1e-3}\n{\"b\": null}\n{\"a\": 0.2";
  CHECK(numbers_of(lines, "a") == std::vector<double>{0.5, -1e-3});
  CHECK(numbers_of(lines, "step") == std::vector<double>{1, 2});
  CHECK(numbers_of(lines, "b") == std::vector<double>{2});
  CHECK(numbers_of(lines, "c").empty());
  CHECK(numbers_of("", "a").empty());
}

TEST_CASE("an epoch that is due is logged anew") {
  const std::string steps = "{\"step\": 1, \"loss\": 2}\n{\"step\": 2, \"loss\": 1}\n",
                    epoch = "{\"step\": 2, \"epoch\": 1, \"seconds\": 0.5}\n";
  CHECK(track::lines_until(steps + epoch + "{\"step\": 3}\n", 2) == steps + epoch);
  CHECK(track::lines_until(steps + epoch + "{\"step\": 3}\n", 2, false) == steps);
  CHECK(track::lines_until("{\"step\": 1, \"seconds\": 3}\n" + steps + epoch, 2, false) ==
        "{\"step\": 1, \"seconds\": 3}\n" + steps);
}

TEST_CASE("a resumed metrics file equals that of an uninterrupted run") {
  testing::TempFolder folder;
  const auto run = [&](const std::string& name, int64_t resume, int64_t from, int64_t to) {
    MetricsLog log(folder / name, resume);
    const auto steps = std::make_shared<Names>(Names{{"loss"}, {"train/loss"}});
    const auto epochs = std::make_shared<Names>(Names{{"test/accuracy", "odd"}, {"", ""}, true});
    for (int64_t step = from; step <= to; ++step) {
      log.write({steps, step, 0, {1 / std::sqrt(static_cast<double>(step))}});
      if (step % 10 == 0) log.write({epochs, step, 0, {0.5, NAN}});
    }
    log.flush();
  };
  run("whole.jsonl", -1, 1, 40);
  run("killed.jsonl", -1, 1, 27);
  std::filesystem::resize_file(folder / "killed.jsonl",
                               std::filesystem::file_size(folder / "killed.jsonl") - 3);
  run("killed.jsonl", 20, 21, 40);
  CHECK(read_text(folder / "killed.jsonl") == read_text(folder / "whole.jsonl"));
  write_file(folder / "killed.jsonl", read_text(folder / "whole.jsonl") + "{\"step\": \"x\"}\n[1]\n\n");
  run("killed.jsonl", 40, 41, 40);
  CHECK(read_text(folder / "killed.jsonl") == read_text(folder / "whole.jsonl"));
  CHECK(read_text(folder / "whole.jsonl").find("{\"step\": 10, \"test/accuracy\": 0.5, \"odd\": null}\n") !=
        std::string::npos);
  run("whole.jsonl", -1, 1, 1);
  CHECK(read_text(folder / "whole.jsonl") == "{\"step\": 1, \"loss\": 1}\n");
}
