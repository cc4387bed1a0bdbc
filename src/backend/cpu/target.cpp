#include "backend/cpu/target.h"

#include "backend/cpu/onednn/staged_kernel.h"
#include "backend/ref/provider.h"

namespace millrace {
namespace cpu {

#define KIND(NAME) extern const ProviderKind provider_##NAME;
#include "generated/providers.inc"
#undef KIND

Registry<ProviderKind>& providers() {
#define KIND(NAME) &provider_##NAME,
  static Registry<ProviderKind> all("provider", {
#include "generated/providers.inc"
                                                });
#undef KIND
  return all;
}

Target make_target() {
  Target target;
  target.name = "cpu";
  target.fuses = true;
  target.fast_bf16 = onednn::has_bf16_units();
  for (const ProviderKind* kind : providers().all()) target.providers.push_back(kind->make());
  target.providers.push_back(ref::make_provider());
  return target;
}

}  // namespace cpu

const ProviderKind& register_provider(const ProviderKind& kind) {
  return cpu::providers().add(kind, {{"make", kind.make}});
}

}  // namespace millrace
