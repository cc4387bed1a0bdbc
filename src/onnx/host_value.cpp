#include "onnx/host_value.h"

#include "base/format.h"
#include "base/wire.h"
#include "onnx/writer.h"

namespace millrace::onnx {
namespace {

constexpr int kMostNested = 16;  // sequences within sequences

HostValue parse(std::string_view bytes, ValueInfo::Form form, const std::string& name, int depth);

/// The fields of a SequenceProto: 2 elem_type; 3 tensors, 5 sequences, 7 optionals.
HostValue parse_sequence(std::string_view bytes, const std::string& name, int depth) {
  HostValue sequence = HostValue::of(std::vector<HostValue>{});
  WireReader fields(bytes);
  while (fields.next()) {
    if (fields.field() < 3 || fields.field() > 7) continue;
    if (fields.type() != 2 || (fields.field() != 3 && fields.field() != 5 && fields.field() != 7))
      fail<InputError>("{}: a sequence of what is neither tensors, sequences nor optionals", name);
    const auto form = fields.field() == 3   ? ValueInfo::Form::tensor
                      : fields.field() == 5 ? ValueInfo::Form::sequence
                                            : ValueInfo::Form::optional;
    sequence.items.push_back(parse(fields.bytes(), form, name, depth + 1));
  }
  if (fields.damaged()) fail<InputError>("{}: the file is damaged", name);
  return sequence;
}

/// The fields of an OptionalProto: 2 elem_type; 3 a tensor, 5 a sequence, 7 an optional.
HostValue parse_optional(std::string_view bytes, const std::string& name, int depth) {
  HostValue value;
  WireReader fields(bytes);
  while (fields.next()) {
    if (fields.type() != 2) continue;
    if (fields.field() == 3) value = parse(fields.bytes(), ValueInfo::Form::tensor, name, depth + 1);
    if (fields.field() == 5) value = parse(fields.bytes(), ValueInfo::Form::sequence, name, depth + 1);
    if (fields.field() == 7) value = parse(fields.bytes(), ValueInfo::Form::optional, name, depth + 1);
  }
  if (fields.damaged()) fail<InputError>("{}: the file is damaged", name);
  return value;
}

HostValue parse(std::string_view bytes, ValueInfo::Form form, const std::string& name, int depth) {
  if (depth > kMostNested)
    fail<InputError>("{}: sequences lie more than {} deep in each other", name, kMostNested);
  switch (form) {
    case ValueInfo::Form::tensor:
      return value_of(parse_tensor(bytes, name), {});
    case ValueInfo::Form::sequence:
      return parse_sequence(bytes, name, depth);
    case ValueInfo::Form::optional:
      return parse_optional(bytes, name, depth);
    default:
      fail<InputError>("{}: only tensors, sequences and optionals are read", name);
  }
}

/// DataType of SequenceProto and OptionalProto.
constexpr uint64_t kOfNothing = 0, kOfTensors = 1, kOfSequences = 3;

WireWriter message_of(const HostValue& value) {
  WireWriter message;
  switch (value.form) {
    case HostValue::Form::tensor:
      return tensor_message("", value.array);
    case HostValue::Form::texts:
      for (const int64_t size : value.texts.shape) message.integer(1, size);
      message.varint(2, 8);
      for (const std::string& text : value.texts.values) message.bytes(6, text);
      return message;
    case HostValue::Form::sequence: {
      const bool nested = !value.items.empty() && value.items[0].form == HostValue::Form::sequence;
      message.varint(2, nested ? kOfSequences : kOfTensors);
      for (const HostValue& each : value.items) message.message(nested ? 5 : 3, message_of(each));
      return message;
    }
    case HostValue::Form::nothing:
      return message.varint(2, kOfNothing);
  }
  return message;
}

}  // namespace

int64_t Texts::count() const { return Shape(shape).count(); }

Texts texts_of(const TensorProto& tensor) {
  if (const std::string fault = Type{u8, Shape(tensor.dims)}.fault(); !fault.empty())
    fail<InputError>("the tensor of texts '{}': {}", tensor.name, fault);
  Texts texts{tensor.dims, tensor.texts};
  if (texts.count() != static_cast<int64_t>(texts.values.size()))
    fail<InputError>("the tensor '{}' says that its shape is {}, but holds {} texts", tensor.name,
                     Shape(tensor.dims).str(), texts.values.size());
  return texts;
}

HostValue value_of(const TensorProto& tensor, const std::filesystem::path& folder) {
  if (tensor.is_text()) return HostValue::of(texts_of(tensor));
  return HostValue::of(array_of(tensor, folder));
}

HostValue parse_value(std::string_view bytes, const ValueInfo& info, const std::string& name) {
  return parse(bytes, info.form, name, 0);
}

std::string written_value(const HostValue& value, const ValueInfo& info) {
  if (info.form != ValueInfo::Form::optional || value.form == HostValue::Form::nothing)
    return message_of(value).text();
  const bool sequence = value.form == HostValue::Form::sequence;
  return WireWriter()
      .varint(2, sequence ? kOfSequences : kOfTensors)
      .message(sequence ? 5 : 3, message_of(value))
      .text();
}

}  // namespace millrace::onnx
