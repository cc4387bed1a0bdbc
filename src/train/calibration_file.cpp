#include "train/calibration_file.h"

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/format.h"
#include "base/utf8.h"
#include "task/calibrated.h"
#include "train/run_folder.h"

namespace millrace::train {
namespace {

using CalibrationJson = nlohmann::json;

std::string damaged_calibration(const std::filesystem::path& path, const char* why) {
  return fmt::format("{}: is damaged: {}; remove it, or run millrace calibrate again", path.string(), why);
}

}  // namespace

void write_calibration(const std::filesystem::path& run, const task::Task& task, int64_t step,
                       const std::string& data) {
  const std::filesystem::path path = RunFolder::open(run).calibration();
  CalibrationJson outputs = CalibrationJson::object();
  for (const auto& output : task.outputs)
    if (!output->calibration().empty())
      outputs[output->name()] = CalibrationJson::parse(task::calibration_json(output->calibration()));
  std::error_code ignored;
  if (outputs.empty())
    std::filesystem::remove(path, ignored);
  else
    write_file(
        path,
        CalibrationJson{{"step", step}, {"data", stored_text(data)}, {"outputs", outputs}}.dump(1) + "\n");
}

void read_calibration(const std::filesystem::path& run, task::Task& task, int64_t step,
                      std::vector<std::string>& warnings) {
  const std::filesystem::path path = RunFolder::open(run).calibration();
  if (!std::filesystem::exists(path)) return;
  try {
    const auto json = CalibrationJson::parse(read_text(path));
    if (const auto fitted = json.at("step").get<int64_t>(); fitted != step) {
      warnings.push_back(fmt::format(
          "{} is of step {} and does not fit the weights of step {}: probabilities are as they come from the "
          "model; millrace calibrate fits them anew",
          path.string(), fitted, step));
      return;
    }
    const auto& outputs = json.at("outputs");
    for (const auto& output : task.outputs)
      if (outputs.contains(output->name()))
        output->calibrate(task::calibration_of(outputs.at(output->name()).dump(), *output));
  } catch (const CalibrationJson::exception& error) {
    throw InputError(damaged_calibration(path, error.what()));
  } catch (const InputError& error) {
    throw InputError(damaged_calibration(path, error.what()));
  }
}

std::string calibration_data(const std::filesystem::path& run) {
  const std::filesystem::path path = RunFolder::open(run).calibration();
  if (!std::filesystem::exists(path)) return {};
  const auto json = CalibrationJson::parse(read_text(path), nullptr, false);
  return json.is_object() ? text_of_stored(json.value("data", "")) : "";
}

}  // namespace millrace::train
