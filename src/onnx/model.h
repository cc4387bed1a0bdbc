// An ONNX model as it lies in its file (github.com/onnx/onnx, onnx.proto, IR up to 13): messages as plain
// structs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/array.h>
#include <millrace/narrow_types.h>

namespace millrace::onnx {

/// A TensorProto. Its elements are read when array() is asked for.
struct TensorProto {
  std::string name;
  int64_t data_type = 0;  // TensorProto.DataType
  std::vector<int64_t> dims;
  std::string_view raw;                                                    // raw_data, in the file
  std::vector<std::string_view> floats, doubles, int32s, int64s, uint64s;  // packed or single, as they came
  std::vector<std::string> texts;
  std::map<std::string, std::string> external;  // location, offset, length; empty: the elements are in here

  bool is_text() const { return data_type == 8; }
};

/// A SparseTensorProto: values, and where they lie in a tensor of zeros.
struct SparseTensorProto {
  TensorProto values, indices;  // indices: i64 [values] in the flattened tensor, or [values, rank]
  std::vector<int64_t> dims;
};

/// A tensor of texts, row-major.
struct Texts {
  std::vector<int64_t> shape;
  std::vector<std::string> values;
};

class ExternalFiles;
struct GraphProto;

/// An AttributeProto.
struct AttributeProto {
  std::string name;
  std::string refers_to;  // of a function: the attribute of its call whose value this one has
  float number = 0;
  int64_t integer = 0;
  std::string text;
  std::optional<TensorProto> tensor;
  std::optional<SparseTensorProto> sparse;
  std::shared_ptr<const GraphProto> graph;
  std::vector<float> numbers;
  std::vector<int64_t> integers;
  std::vector<std::string> texts;
};

struct NodeProto {
  std::string name, op_type, domain, overload;
  std::vector<std::string> inputs, outputs;  // empty: left out
  std::vector<AttributeProto> attributes;

  const AttributeProto* find(std::string_view attribute) const;
};

/// The type of an input or output.
struct ValueInfo {
  enum class Form { other, tensor, sequence, optional };
  std::string name;
  Form form = Form::other;  // other: a map, a sparse tensor, nothing known
  int64_t data_type = 0;
  bool has_shape = false;
  struct Dimension {
    int64_t size = -1;  // below 0: not a number
    std::string name;   // a word, where it is not a number: the model's name for it, or its place
  };
  std::vector<Dimension> shape;
};

struct GraphProto {
  std::vector<NodeProto> nodes;
  std::vector<TensorProto> initialisers;
  std::vector<SparseTensorProto> sparse;  // initialisers, too; named by their values
  std::vector<ValueInfo> inputs, outputs;
};

/// An operator that the model defines by others.
struct FunctionProto {
  std::string name, domain, overload;
  std::vector<std::string> inputs, outputs;
  std::vector<AttributeProto> defaults;  // of its attributes
  std::vector<NodeProto> nodes;
  std::map<std::string, int64_t> opsets;
};

/// A whole model. The elements of its tensors lie in the file, which stays mapped as long as this lives.
struct Model {
  std::map<std::string, int64_t> opsets;  // by domain; "" is ONNX's own
  GraphProto graph;
  std::vector<FunctionProto> functions;
  std::filesystem::path folder;       // what external data is relative to
  std::shared_ptr<const void> bytes;  // keeps what is pointed at alive
  const void* mapped = nullptr;       // where the file is
};

/// Reads a file. IoError when it cannot be read, InputError when it is no ONNX model or damaged.
Model read_model(const std::filesystem::path& path);
/// The same from memory, which must stay as long as the model; `name` is for messages.
Model parse_model(std::string_view bytes, const std::string& name);
/// A TensorProto that is a file of its own (test data of the ONNX suite).
TensorProto parse_tensor(std::string_view bytes, const std::string& name);

/// A name of a dimension, which is any text in ONNX ("past_length + 1", "N:0") and a word here.
std::string as_word(std::string name);

/// TensorProto.DataType is less than this.
inline constexpr int64_t kDataTypes = 27;
/// The dtype of a TensorProto.DataType; nullopt where Millrace has none.
std::optional<DType> dtype_of(int64_t data_type);
/// "float16", "uint4": ONNX's word.
std::string data_type_name(int64_t data_type);
/// The elements. InputError when there are more or fewer than the shape says, when the type is none of
/// Millrace's, or when external data is not there or lies outside of the model's folder. With `files` large
/// external data is not copied: the array lies in one of them, and nobody may write to it.
Array array_of(const TensorProto& tensor, const std::filesystem::path& folder,
               ExternalFiles* files = nullptr);
/// Opens the files of external data of the model's own initialisers. IoError where one is not there,
/// InputError where it is too short.
void open_external(const Model& model, ExternalFiles& files);
/// The model's own initialisers of 4 kB or more, by their names, as above.
std::map<std::string, Array> large_initialisers(const Model& model, ExternalFiles& files);
/// The same of a sparse tensor, made dense. InputError also when it would have more than 2^28 elements.
Array array_of(const SparseTensorProto& tensor, const std::filesystem::path& folder);
/// The texts of a tensor. InputError when there are more or fewer than its shape says.
Texts texts_of(const TensorProto& tensor);

}  // namespace millrace::onnx
