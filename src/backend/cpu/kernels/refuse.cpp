#include <cstring>
#include <string>

#include <millrace/operator.h>

#include "base/format.h"
#include "target/provider.h"

namespace millrace::cpu {
namespace {

class Refuse : public Kernel {
 public:
  explicit Refuse(const Node& node)
      : message_(node.attributes.get<std::string>("message")), type_(node.types[0]) {}

  std::string description() const override { return "zeros, or an error"; }
  void run(void* const* operands, void* const* results, void*, DeviceContext) override {
    if (*static_cast<const uint8_t*>(operands[0]) != 0) fail<InputError>("{}", message_);
    std::memset(results[0], 0, static_cast<size_t>(type_.shape.count() * type_.dtype.bytes()));
  }

 private:
  std::string message_;
  Type type_;
};

std::unique_ptr<Kernel> build_refuse(const KernelRequest& request) {
  return std::make_unique<Refuse>(request.node);
}

}  // namespace

MILLRACE_PROVIDER(refuse){.name = "refuse", .doc = "refuse, as an exception", .place = 104, .make = [] {
                            return kernels_of({{"refuse", build_refuse}});
                          }};

}  // namespace millrace::cpu
