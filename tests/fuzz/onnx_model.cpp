// Hostile ONNX models: refused, or imported into a graph. Inputs whose sizes the model does not say have 2 of
// each; those that are more than tensors are given in the model.
#include <deque>

#include "fuzz/fuzz.h"
#include "onnx/import/import.h"
#include "onnx/writer.h"

using namespace millrace;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::refuse_or_take([&] {
    onnx::Model model = onnx::parse_model(fuzz::text(data, size), "input.onnx");
    onnx::ImportOptions options;
    std::deque<std::string> bytes;  // of initialisers
    std::vector<onnx::NodeProto> nodes;
    const auto initialise = [&](const std::string& name, const Array& array) {
      bytes.push_back(onnx::tensor_message(name, array).text());
      model.graph.initialisers.push_back(onnx::parse_tensor(bytes.back(), name));
    };
    for (const onnx::ValueInfo& input : model.graph.inputs) {
      const std::optional<DType> dtype = onnx::dtype_of(input.data_type);
      const bool sequence = input.form == onnx::ValueInfo::Form::sequence;
      if (sequence || input.form == onnx::ValueInfo::Form::optional) {
        onnx::NodeProto& node = nodes.emplace_back();
        node.op_type = sequence ? "SequenceConstruct" : "Optional";
        node.outputs = {input.name};
        if (sequence) node.inputs = {input.name + ".0", input.name + ".1"};
        for (const std::string& name : node.inputs) initialise(name, Array(f32, {2}));
        continue;
      }
      if (input.form != onnx::ValueInfo::Form::tensor || input.data_type == 8) {
        onnx::TensorProto& texts = model.graph.initialisers.emplace_back();
        texts.name = input.name;
        texts.data_type = 8;
        texts.dims = {2};
        texts.texts = {"a", "b c"};
        continue;
      }
      if (!dtype) continue;
      Type type{*dtype, {}};
      for (const auto& dim : input.shape) type.shape.emplace_back(dim.size < 0 ? 2 : dim.size);
      if (!type.fault().empty()) continue;
      // Small ones are known, half of them: so what depends on them is computed.
      if (type.shape.count() <= 4 && input.name.size() % 2 == 0)
        initialise(input.name, Array::full(*dtype, type.shape, 1));
      else
        options.inputs[input.name] = type;
    }
    std::erase_if(model.graph.inputs,
                  [](const onnx::ValueInfo& input) { return input.form != onnx::ValueInfo::Form::tensor; });
    model.graph.nodes.insert(model.graph.nodes.begin(), nodes.begin(), nodes.end());
    (void)onnx::import_model(model, options);
  });
  return 0;
}
