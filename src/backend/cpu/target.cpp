#include <map>
#include <mutex>

#include "backend/cpu/onednn/staged_kernel.h"
#include "backend/ref/provider.h"
#include "target/device.h"
#include "target/provider.h"

namespace millrace {
namespace cpu {
namespace {

Target make_target() {
  Target target;
  target.name = "cpu";
  target.fuses = true;
  target.fast_bf16 = onednn::has_bf16_units();
  for (const ProviderKind* kind : providers().all())
    target.providers.push_back(made_by("provider", kind->name, kind->make()));
  target.providers.push_back(ref::make_provider());
  return target;
}

/// One for each list of providers that there was: programs keep theirs.
const Target& target_now() {
  static std::map<size_t, Target>& targets = *new std::map<size_t, Target>;
  static std::mutex making;
  const std::lock_guard lock(making);
  const size_t count = providers().all().size();
  const auto found = targets.find(count);
  return found != targets.end() ? found->second : targets.emplace(count, make_target()).first->second;
}

}  // namespace

}  // namespace cpu

MILLRACE_TARGET(cpu){"cpu", "kernels for this machine's CPUs", cpu::target_now};

}  // namespace millrace
