#include "support/onnx_cases.h"

#include <algorithm>
#include <cmath>

#include <millrace/error.h>

#include "base/file.h"

namespace millrace::test {
namespace fs = std::filesystem;
namespace {

using onnx::HostValue;

HostValue value_in(const fs::path& path, const onnx::ValueInfo& info) {
  const std::vector<uint8_t> bytes = read_file(path);
  return onnx::parse_value({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, info, path.string());
}

/// The suite's own measure, |a − b| ≤ 1e-7 + 1e-3·|b|, with room for sums in another order and 16-bit floats.
bool alike(const Array& is, const Array& should) {
  if (is.type() != should.type()) return false;
  const double relative = should.dtype().bits == 16 ? 1e-2 : 1e-3;
  double largest = 0;
  for (int64_t i = 0; i < should.count(); ++i)
    if (std::isfinite(should.at(i))) largest = std::max(largest, std::abs(should.at(i)));
  const double absolute = should.dtype().is_float() ? 1e-7 + 1e-6 * largest : 1e-7;
  for (int64_t i = 0; i < is.count(); ++i) {
    const double a = is.at(i), b = should.at(i);
    if (std::isnan(a) && std::isnan(b)) continue;
    if (a == b) continue;
    if (!(std::abs(a - b) <= absolute + relative * std::abs(b))) return false;
  }
  return true;
}

std::string difference(const HostValue& is, const HostValue& should) {
  if (is.form != should.form) return "a result of another form";
  switch (is.form) {
    case HostValue::Form::tensor:
      if (is.array.type() != should.array.type())
        return "a result " + is.array.type().str() + ", not " + should.array.type().str();
      return alike(is.array, should.array) ? "" : "another result";
    case HostValue::Form::texts:
      return is.texts.shape == should.texts.shape && is.texts.values == should.texts.values ? ""
                                                                                            : "other texts";
    case HostValue::Form::sequence:
      if (is.items.size() != should.items.size()) return "a sequence of another length";
      for (size_t i = 0; i < is.items.size(); ++i)
        if (std::string why = difference(is.items[i], should.items[i]); !why.empty()) return why;
      return "";
    default:
      return "";
  }
}

}  // namespace

std::map<std::string, HostValue> onnx_inputs(const onnx::Model& model, const fs::path& folder) {
  std::map<std::string, HostValue> inputs;
  int at = 0;
  for (const onnx::ValueInfo& input : model.graph.inputs) {
    const fs::path file = folder / ("input_" + std::to_string(at++) + ".pb");
    if (fs::exists(file)) inputs[input.name] = value_in(file, input);
  }
  return inputs;
}

OnnxCase run_onnx_case(const fs::path& folder, bool reference) {
  OnnxCase found;
  try {
    const onnx::Model model = onnx::read_model(folder / "model.onnx");
    const fs::path data = folder / "test_data_set_0";
    const onnx::Ran ran = onnx::run_model(model, onnx_inputs(model, data), reference);
    found.known = ran.known;
    found.launches = ran.launches;
    for (size_t i = 0; i < ran.outputs.size() && found.why.empty(); ++i)
      found.why = difference(
          ran.outputs[i], value_in(data / ("output_" + std::to_string(i) + ".pb"), model.graph.outputs[i]));
  } catch (const Error& e) {
    found.why = e.what();
  }
  return found;
}

}  // namespace millrace::test
