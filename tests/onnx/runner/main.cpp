// Runs ONNX models for tests/onnx/backend.py: of each two lines MODEL and FOLDER of its standard input the
// model on FOLDER/input_K.pb, results into FOLDER/output_K.pb. Answers with a line "ok" or "error: …".
#include <algorithm>
#include <iostream>
#include <string>

#include <millrace/error.h>

#include "base/file.h"
#include "base/wire.h"
#include "onnx/writer.h"
#include "support/onnx_cases.h"

using namespace millrace;
namespace fs = std::filesystem;

namespace {

/// DataType of SequenceProto and OptionalProto.
constexpr uint64_t kOfNothing = 0, kOfTensors = 1, kOfSequences = 3;

WireWriter message_of(const test::HostValue& value) {
  WireWriter message;
  switch (value.form) {
    case test::HostValue::Form::tensor:
      return onnx::tensor_message("", value.array);
    case test::HostValue::Form::texts:
      for (const int64_t size : value.texts.shape) message.integer(1, size);
      message.varint(2, 8);
      for (const std::string& text : value.texts.values) message.bytes(6, text);
      return message;
    case test::HostValue::Form::sequence: {
      const bool nested = !value.items.empty() && value.items[0].form == test::HostValue::Form::sequence;
      message.varint(2, nested ? kOfSequences : kOfTensors);
      for (const test::HostValue& each : value.items) message.message(nested ? 5 : 3, message_of(each));
      return message;
    }
    case test::HostValue::Form::nothing:
      return message.varint(2, kOfNothing);
  }
  return message;
}

/// A TensorProto, SequenceProto or OptionalProto (onnx-data.proto), as `info` says.
std::string written_value(const test::HostValue& value, const onnx::ValueInfo& info) {
  if (info.form != onnx::ValueInfo::Form::optional || value.form == test::HostValue::Form::nothing)
    return message_of(value).text();
  const bool sequence = value.form == test::HostValue::Form::sequence;
  return WireWriter()
      .varint(2, sequence ? kOfSequences : kOfTensors)
      .message(sequence ? 5 : 3, message_of(value))
      .text();
}

std::string answer(const fs::path& path, const fs::path& folder) {
  try {
    const onnx::Model model = onnx::read_model(path);
    const test::Ran ran = test::run_model(model, test::onnx_inputs(model, folder));
    for (size_t i = 0; i < ran.outputs.size(); ++i)
      write_file(folder / ("output_" + std::to_string(i) + ".pb"),
                 written_value(ran.outputs[i], model.graph.outputs[i]));
    return "ok";
  } catch (const std::exception& e) {
    std::string why = e.what();
    std::replace(why.begin(), why.end(), '\n', ' ');
    return "error: " + why;
  }
}

}  // namespace

int main() {
  for (std::string model, folder; std::getline(std::cin, model) && std::getline(std::cin, folder);)
    std::cout << answer(model, folder) << std::endl;
}
