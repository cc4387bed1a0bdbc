#include "train/verdict.h"

#include <doctest/doctest.h>

using namespace millrace::train;

namespace {

constexpr const char* pack = "millrace pack --resize 256";

DataMeans means(const char* unit = "samples", const std::string& cheaper = "", double cost = 1) {
  DataMeans means;
  means.cpus = 2;
  means.unit = unit;
  means.cheaper = cheaper;
  means.cheaper_cost = cost;
  return means;
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a model that hardly waits is told how little, and what the loader cost") {
  // 1000 pictures in 1 s, each 240 µs of CPU: 12 % of 2 CPUs.
  const DataTimes times{1000, 1.0, 0.03, 500, 0.12, 0, 0.2};
  CHECK(data_verdict(times, means("pictures")) ==
        "data: the model waited 3.0 % of the time for pictures (loader 240 µs of CPU each, 12 % of all CPU "
        "time)");
  // By its own samples the loader would take four CPUs of two.
  CHECK(has(data_verdict({1000, 1.0, 0.03, 500, 2.0, 0, 2.0}, means()), ", 100 % of all CPU time"));
}

TEST_CASE("nothing is said of the cache when it keeps up, nor of nothing") {
  const DataTimes times{1000, 1.0, 0.04, 1000, 0.02, 0, 0.02};
  DataMeans kept = means();
  kept.cached = true;
  CHECK(data_verdict(times, kept) == "");
  CHECK(data_verdict(times, means()) != "");
  CHECK(has(data_verdict({1000, 1.0, 0.06, 1000, 0.02, 0, 0.02}, kept), "waited 6 %"));
  CHECK(data_verdict({}, means()) == "");
}

TEST_CASE("decoding that binds is named with its limit, the model's own rate and what would help") {
  // 1510 pictures in 1 s on 2 CPUs, 1.27 ms each: 96 % of 1572/s; without waiting 0.719 s: 2,100/s.
  const DataTimes times{1510, 1.0, 0.281, 1510, 1510 * 1.2715e-3, 0.05, 2.0};
  const std::string line = data_verdict(times, means("pictures", pack, 1 / 1.38));
  CHECK(has(line, "decode-bound at 1,510 pictures/s: 96 % of what 2 CPUs can get ready (1,573)"));
  CHECK(has(line, "the model waited 28 % of the time; the model could take 2,100"));
  CHECK(has(line, "millrace pack --resize 256 would give about +38 %"));
  // No more than the model takes, and nothing where nothing is gained.
  CHECK(has(data_verdict(times, means("pictures", pack, 0.1)), "--resize 256 would give about +39 %"));
  CHECK(has(data_verdict(times, means("pictures", pack, 1.1)), "fewer augmentations"));
  CHECK(!has(line, "\n"));
  DataMeans keeping = means("pictures", pack);
  keeping.cache_mb = 300;
  CHECK(has(data_verdict(times, keeping), "data.cache_mb = 300"));
  CHECK(has(data_verdict(times, means()), "fewer augmentations"));
  DataMeans plain = means();  // as of tables, which have none
  plain.augments = false;
  CHECK(has(data_verdict(times, plain), "; more CPUs would help"));
  CHECK(has(data_verdict(times, means("sounds")), "decode-bound at 1,510 sounds/s"));
}

TEST_CASE("waiting for batches of what is in memory is not called decoding") {
  DataMeans kept = means("rows");
  kept.cached = true;
  const std::string line = data_verdict({100'000, 1.0, 0.2, 100'000, 0.05, 0, 0.05}, kept);
  CHECK(has(line, "the model waited 20 % of the time for rows"));
  CHECK(!has(line, "decode-bound"));
}

TEST_CASE("waiting with idle CPUs is reading, not decoding") {
  // 2 s of the loader's threads: 0.2 on a CPU, 0.1 in line for one, 1.7 waiting for bytes.
  const std::string line = data_verdict({100, 1.0, 0.8, 100, 0.2, 0.1, 2.0}, means("rows", pack));
  CHECK(has(line, "bound by reading at 100 rows/s"));
  CHECK(has(line, "the loader's threads 85 % of theirs for bytes"));
  CHECK(has(line, "the model could take 500"));
  // The same with CPUs that others have: not the source's fault.
  const std::string busy = data_verdict({100, 1.0, 0.8, 100, 0.2, 1.7, 2.0}, means());
  CHECK(has(busy, "short of CPUs at 100 samples/s"));
  CHECK(has(busy, "stood in line for a CPU 85 % of theirs"));
  CHECK(!has(line, "decode-bound"));
}

TEST_CASE("times of an interval are the difference of its ends") {
  const DataTimes d = DataTimes{30, 3, 1, 40, 2, 1, 4} - DataTimes{10, 1, 0.5, 15, 0.5, 0.5, 2};
  CHECK(d.samples == 20);
  CHECK(d.queued == 0.5);
  CHECK(d.loading == 2);
  CHECK(d.wait_share() == 0.25);
  CHECK(d.cpu_per_sample() == 1.5 / 25);
}
