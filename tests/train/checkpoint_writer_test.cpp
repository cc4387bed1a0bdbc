#include "train/checkpoint_writer.h"

#include <atomic>
#include <chrono>
#include <doctest/doctest.h>

#include "support/temp_folder.h"

using namespace millrace;
using namespace millrace::train;

namespace {

void fill(Array& array, float value) {
  array.edit<float>([&](std::span<float> to) { std::fill(to.begin(), to.end(), value); });
}

Checkpoint of_arrays(int64_t step, const Array& small, const Array& large) {
  Checkpoint c;
  c.step = step;
  c.tensors = {{"small", small}, {"large", large}, {"none", Array(f32, {0})}};
  return c;
}

bool all_are(const Array& array, float value) {
  const auto values = array.as<float>();
  return std::all_of(values.begin(), values.end(), [&](float each) { return each == value; });
}

}  // namespace

TEST_CASE("what is written is what was there when the checkpoint was asked for, one after the other") {
  const testing::TempFolder folder;
  Array small(f32, {3}), large(f32, {1 << 18});
  CheckpointWriter writer;
  std::atomic<int> writing{0}, most{0};
  for (int64_t step = 1; step <= 6; ++step) {
    if (step == 4) large = Array(f32, {1 << 16, 5});  // a step with other parameters
    fill(small, static_cast<float>(step));
    fill(large, static_cast<float>(-step));
    writer.start(of_arrays(step, small, large), [&](const Checkpoint& checkpoint) {
      most = std::max(most.load(), ++writing);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      save_checkpoint(folder.path(), checkpoint, 10);
      --writing;
    });
    fill(small, 99);
    fill(large, 99);
  }
  writer.wait();
  CHECK(most == 1);
  for (int64_t step = 1; step <= 6; ++step) {
    const Checkpoint read = read_checkpoint(folder / checkpoint_name(step));
    CHECK(read.step == step);
    for (const auto& [name, array] : read.tensors)
      CHECK(all_are(array, static_cast<float>(name == "small" ? step : -step)));
  }
}

TEST_CASE("what a checkpoint fails with is told once, by whatever asks next") {
  Array one(f32, {1});
  CheckpointWriter writer;
  const auto failing = [](const Checkpoint&) { throw IoError("the disk is full"); };
  writer.start(of_arrays(1, one, one), failing);
  CHECK_THROWS_WITH_AS(writer.wait(), "the disk is full", IoError);
  CHECK_NOTHROW(writer.wait());
  writer.start(of_arrays(2, one, one), failing);
  CHECK_THROWS_AS(writer.start(of_arrays(3, one, one), [](const Checkpoint&) {}), IoError);
  CHECK_NOTHROW(writer.check());
  writer.start(of_arrays(4, one, one), failing);
  bool told = false;
  while (!told) {
    try {
      writer.check();
      std::this_thread::yield();
    } catch (const IoError&) {
      told = true;
    }
  }
}

TEST_CASE("a writer that is gone has written what it had") {
  const testing::TempFolder folder;
  Array one(f32, {1});
  {
    CheckpointWriter writer;
    writer.start(of_arrays(5, one, one), [&](const Checkpoint& checkpoint) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      save_checkpoint(folder.path(), checkpoint, 1);
    });
  }
  CHECK(read_checkpoint(folder / checkpoint_name(5)).step == 5);
}

TEST_CASE("the checkpoint that a training may go back to stays beside the newest") {
  const testing::TempFolder folder;
  Array one(f32, {1});
  for (const int64_t step : {2, 4, 6, 8}) save_checkpoint(folder.path(), of_arrays(step, one, one), 1, 4);
  std::vector<std::string> names;
  for (const auto& path : list_checkpoints(folder.path())) names.push_back(path.filename());
  CHECK(names == std::vector<std::string>{checkpoint_name(4), checkpoint_name(8)});
}
