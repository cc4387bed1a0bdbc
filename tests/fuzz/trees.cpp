// Arrays of a checkpoint as the trees of a boosted model: what check() lets pass is walked and resumed.
#include <cstdlib>
#include <cstring>
#include <vector>

#include "fuzz/fuzz.h"
#include "nn/models/architecture.h"
#include "nn/models/fitted.h"

using namespace millrace;

namespace {

/// The next `count` numbers of what is left.
template <typename T>
Array taken(DType dtype, int64_t count, std::span<const uint8_t>& left) {
  Array array(dtype, {count});
  for (T& each : array.as<T>()) {
    const size_t bytes = std::min(sizeof(T), left.size());
    each = {};
    if (bytes > 0) std::memcpy(&each, left.data(), bytes);
    left = left.subspan(bytes);
  }
  return array;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::span<const uint8_t> left(data, size);
  if (left.size() < 2) return 0;
  const int64_t nodes = 1 + left[0] % 16, trees = 1 + left[1] % 4;
  left = left.subspan(2);
  const nn::Architecture& kind = nn::architectures().at("boosting");
  Settings settings(kind.settings);
  settings.set("rounds", int64_t{3});
  const nn::Model model = kind.make("boosting", settings, {.classes = 2, .numbers = 2});
  auto& module = dynamic_cast<nn::Fitted&>(*model.module);
  const Array x = Array::of(f32, {3, 2}, std::vector<double>{0, 1, -2, .5, 3, 3});
  fuzz::refuse_or_take([&] {
    *module.find("column") = Tensor(taken<int32_t>(i32, nodes, left));
    *module.find("left") = Tensor(taken<int32_t>(i32, nodes, left));
    *module.find("root") = Tensor(taken<int32_t>(i32, trees, left));
    *module.find("threshold") = Tensor(taken<float>(f32, nodes, left));
    *module.find("base") = Tensor(taken<float>(f32, 1, left));
    Array missing(boolean, {nodes});
    for (uint8_t& each : missing.as<uint8_t>()) {
      each = !left.empty() && left[0] % 2;
      if (!left.empty()) left = left.subspan(1);
    }
    *module.find("missing") = Tensor(missing);
    module.check();
    const Tensor rows(x);
    (void)module({&rows, 1}).to_array();
    nn::FitData given;
    given.training = {{x}, Array::of(i64, {3}, std::vector<double>{0, 1, 1}), {}, 3};
    given.width = 2;
    const auto fitting = module.fit(std::move(given));
    fitting->resume(trees);
  });
  return 0;
}
