#include "autodiff/gradient.h"

#include "onnx/import/call.h"

using namespace millrace;

/// The derivatives of a value of the graph by others.
MILLRACE_ONNX_IMPORT(ai_onnx_preview_training_Gradient) {
  const auto tensor = [&](const std::string& name) {
    const onnx::Item item = call.nested.look_up(name);
    if (item.form != onnx::Item::Form::tensor || item.bounded_axis >= 0)
      call.refuse("'" + name + "' is no tensor of a known size");
    return item.value;
  };
  std::vector<Value> by;
  for (const std::string& name : call.attribute("xs").texts) by.push_back(tensor(name));
  const Value y = tensor(call.text("y"));
  const Value loss = call.b.shape(y).rank() == 0 ? y : call.b.sum(y, {}, false);
  std::vector<Value> results = millrace::gradients(call.graph, loss, by);
  for (size_t i = 0; i < results.size(); ++i)
    if (!results[i].valid()) results[i] = call.fill(by[i], 0);
  return results;
}
