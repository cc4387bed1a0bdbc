#include "support/onnx_cases.h"

#include <algorithm>
#include <cmath>

#include "base/file.h"
#include "base/format.h"
#include "base/wire.h"

namespace millrace::test {
namespace fs = std::filesystem;
namespace {

using ValueForm = onnx::ValueInfo::Form;

constexpr int kMostNested = 16;  // sequences within sequences

HostValue parsed_value(std::string_view bytes, ValueForm form, const std::string& name, int depth);

/// The fields of a SequenceProto: 2 elem_type; 3 tensors, 5 sequences, 7 optionals.
HostValue parsed_sequence(std::string_view bytes, const std::string& name, int depth) {
  HostValue sequence = HostValue::of(std::vector<HostValue>{});
  WireReader fields(bytes);
  while (fields.next()) {
    if (fields.field() < 3 || fields.field() > 7) continue;
    if (fields.type() != 2 || (fields.field() != 3 && fields.field() != 5 && fields.field() != 7))
      fail<InputError>("{}: a sequence of what is neither tensors, sequences nor optionals", name);
    const auto form = fields.field() == 3   ? ValueForm::tensor
                      : fields.field() == 5 ? ValueForm::sequence
                                            : ValueForm::optional;
    sequence.items.push_back(parsed_value(fields.bytes(), form, name, depth + 1));
  }
  if (fields.damaged()) fail<InputError>("{}: the file is damaged", name);
  return sequence;
}

/// The fields of an OptionalProto: 2 elem_type; 3 a tensor, 5 a sequence, 7 an optional.
HostValue parsed_optional(std::string_view bytes, const std::string& name, int depth) {
  HostValue value;
  WireReader fields(bytes);
  while (fields.next()) {
    if (fields.type() != 2) continue;
    if (fields.field() == 3) value = parsed_value(fields.bytes(), ValueForm::tensor, name, depth + 1);
    if (fields.field() == 5) value = parsed_value(fields.bytes(), ValueForm::sequence, name, depth + 1);
    if (fields.field() == 7) value = parsed_value(fields.bytes(), ValueForm::optional, name, depth + 1);
  }
  if (fields.damaged()) fail<InputError>("{}: the file is damaged", name);
  return value;
}

HostValue parsed_value(std::string_view bytes, ValueForm form, const std::string& name, int depth) {
  if (depth > kMostNested)
    fail<InputError>("{}: sequences lie more than {} deep in each other", name, kMostNested);
  switch (form) {
    case ValueForm::tensor: {
      const onnx::TensorProto tensor = onnx::parse_tensor(bytes, name);
      return tensor.is_text() ? HostValue::of(onnx::texts_of(tensor))
                              : HostValue::of(onnx::array_of(tensor, {}));
    }
    case ValueForm::sequence:
      return parsed_sequence(bytes, name, depth);
    case ValueForm::optional:
      return parsed_optional(bytes, name, depth);
    default:
      fail<InputError>("{}: only tensors, sequences and optionals are read", name);
  }
}

/// A file of a TensorProto, SequenceProto or OptionalProto (onnx-data.proto); `info` says which.
HostValue value_in(const fs::path& path, const onnx::ValueInfo& info) {
  return parsed_value(read_text(path), info.form, path.string(), 0);
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
    const Ran ran = run_model(model, onnx_inputs(model, data), reference);
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
