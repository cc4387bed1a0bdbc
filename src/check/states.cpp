#include "check/states.h"

#include <filesystem>
#include <random>

#include "base/format.h"

namespace millrace::check {

States states_of(Context& context) {
  States states;
  for (const nn::Named& named : optim::tensors_of(*context.model()))
    states.emplace_back("model." + named.name, optim::value_of(named).clone());
  for (const auto& [name, array] : context.current_step().state())
    states.emplace_back("optimizer." + name, array.clone());
  return states;
}

std::string first_difference(const States& one, const States& other) {
  for (size_t i = 0; i < one.size(); ++i)
    if (i >= other.size() || one[i].first != other[i].first || !one[i].second.identical(other[i].second))
      return one[i].first;
  return other.size() > one.size() ? other[one.size()].first : "";
}

train::Checkpoint through_file(const States& states, int64_t step) {
  train::Checkpoint checkpoint;
  checkpoint.step = step;
  for (const auto& [name, array] : states) checkpoint.tensors.emplace_back(name, array);
  std::random_device random;
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / fmt::format("millrace-check-{:08x}.safetensors", random());
  struct Removed {
    const std::filesystem::path& path;
    ~Removed() {
      std::error_code ignored;
      std::filesystem::remove(path, ignored);
    }
  } removed{path};
  train::write_checkpoint(path, checkpoint);
  return train::read_checkpoint(path);
}

}  // namespace millrace::check
