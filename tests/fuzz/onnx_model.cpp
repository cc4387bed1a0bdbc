// Hostile ONNX models: refused, or imported into a graph. Inputs whose sizes the model does not say have 2 of
// each.
#include "fuzz/fuzz.h"
#include "onnx/import/import.h"

using namespace millrace;

namespace {

onnx::HostValue onnx_input_sample(const onnx::ValueInfo& info) {
  if (info.form == onnx::ValueInfo::Form::optional) return {};
  if (info.form == onnx::ValueInfo::Form::sequence)
    return onnx::HostValue::of({onnx::HostValue::of(Array(f32, {2})), onnx::HostValue::of(Array(f32, {3}))});
  return onnx::HostValue::of(onnx::Texts{{2}, {"a", "b c"}});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::refuse_or_take([&] {
    const onnx::Model model = onnx::parse_model(fuzz::text(data, size), "input.onnx");
    onnx::ImportOptions options;
    for (const onnx::ValueInfo& input : model.graph.inputs) {
      const std::optional<DType> dtype = onnx::dtype_of(input.data_type);
      if (input.form != onnx::ValueInfo::Form::tensor || input.data_type == 8) {
        options.values[input.name] = onnx_input_sample(input);
        continue;
      }
      if (!dtype) continue;
      Type type{*dtype, {}};
      for (const auto& dim : input.shape) type.shape.emplace_back(dim.size < 0 ? 2 : dim.size);
      if (!type.fault().empty()) continue;
      // Small ones are known, half of them: so what depends on them is computed.
      if (type.shape.count() <= 4 && input.name.size() % 2 == 0)
        options.known[input.name] = Array::full(*dtype, type.shape, 1);
      else
        options.inputs[input.name] = type;
    }
    (void)onnx::import_model(model, options);
  });
  return 0;
}
