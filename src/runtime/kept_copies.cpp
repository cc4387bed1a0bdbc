#include "runtime/kept_copies.h"

namespace millrace {
namespace {

CompileOptions options_of(const Graph& make, const std::string& target) {
  CompileOptions options;
  options.target = target;
  for (size_t i = 0; i < make.inputs().size(); ++i)  // bound when they are needed
    options.inputs[static_cast<int>(i)] = Array(make.type(make.inputs()[i]), nullptr, nullptr);
  return options;
}

}  // namespace

KeptCopies::KeptCopies(const Graph& make, const std::string& target)
    : graph_(make), make_(Program::compile(make, options_of(make, target))), seen_(make.inputs().size()) {}

void KeptCopies::refresh(std::span<const Array> inputs, std::span<const int> parameters) {
  bool known = true;
  for (size_t k = 0; k < seen_.size(); ++k) {
    known = known && seen_[k] && inputs[parameters[k]].stamp() == seen_[k];
    seen_[k].reset();
  }
  if (known) return;
  for (size_t k = 0; k < seen_.size(); ++k) make_.bind_input(static_cast<int>(k), inputs[parameters[k]]);
  make_.run();
  ++times_made_;
  for (size_t k = 0; k < seen_.size(); ++k)  // does not keep the parameters alive
    make_.bind_input(static_cast<int>(k), Array(graph_.type(graph_.inputs()[k]), nullptr, nullptr));
}

void KeptCopies::note(std::span<const Array> inputs, std::span<const int> parameters) {
  for (size_t k = 0; k < seen_.size(); ++k) seen_[k] = inputs[parameters[k]].stamp();
}

int64_t bytes_without_copies(const Plan& plan, int first, std::vector<char>& at_peak) {
  std::vector<char> read(plan.storages.size(), 0);
  for (const PlannedLaunch& launch : plan.launches)
    for (const int s : launch.operands) read[s] = 1;
  std::vector<Storage> storages = plan.storages;
  int64_t copies = 0;
  for (size_t s = 0; s < storages.size(); ++s) {
    Storage& storage = storages[s];
    if (storage.kind != StorageKind::input || storage.index < first || !read[s]) continue;
    storage.kind = StorageKind::arena;
    copies += storage.bytes;
    at_peak[storage.index - first] =
        storage.first <= plan.peak_launch && storage.last >= plan.peak_launch ? 1 : 0;
  }
  return place_storages(storages) - copies;
}

}  // namespace millrace
