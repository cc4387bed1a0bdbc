#include "onnx/model.h"

#include <cctype>
#include <cstring>
#include <set>

#include "base/format.h"
#include "base/mapped_file.h"
#include "base/wire.h"

namespace millrace::onnx {
namespace {

constexpr int kDeepest = 64;  // graphs within graphs
constexpr int64_t kNewestIr = 13, kNewestOpset = 27;

/// Reads messages of one file; what is wrong is told with the file's name.
class Parser {
 public:
  explicit Parser(std::string name) : name_(std::move(name)) {}

  Model model(std::string_view bytes) {
    Model model;
    each(bytes, [&](WireReader& field) {
      if (field.field() == 1 && integer(field) > kNewestIr)
        fail<InputError>("{}: is of IR version {}; those to {} can be read", name_, integer(field),
                         kNewestIr);
      if (field.field() == 7) model.graph = graph(message(field), 0);
      if (field.field() == 8) add_opset(model.opsets, message(field));
      if (field.field() == 25) model.functions.push_back(function(message(field)));
    });
    return model;
  }

  TensorProto tensor(std::string_view bytes) {
    TensorProto tensor;
    each(bytes, [&](WireReader& field) {
      if (field.field() == 1) add_integers(tensor.dims, field);
      if (field.field() == 2) tensor.data_type = integer(field);
      if (field.field() == 4) tensor.floats.push_back(field.bytes());
      if (field.field() == 5) tensor.int32s.push_back(packed(field));
      if (field.field() == 6) tensor.texts.push_back(text(field));
      if (field.field() == 7) tensor.int64s.push_back(packed(field));
      if (field.field() == 8) tensor.name = text(field);
      if (field.field() == 9) tensor.raw = message(field);
      if (field.field() == 10) tensor.doubles.push_back(field.bytes());
      if (field.field() == 11) tensor.uint64s.push_back(packed(field));
      if (field.field() == 13) tensor.external.insert(entry(message(field)));
    });
    return tensor;
  }

 private:
  [[noreturn]] void damaged() const { fail<InputError>("{}: the file is damaged or no ONNX model", name_); }

  template <typename Take>
  void each(std::string_view bytes, const Take& take) {
    WireReader fields(bytes);
    while (fields.next()) take(fields);
    if (fields.damaged()) damaged();
  }

  int64_t integer(const WireReader& field) const {
    if (field.type() != 0) damaged();
    return static_cast<int64_t>(field.number());
  }
  std::string_view message(const WireReader& field) const {
    if (field.type() != 2) damaged();
    return field.bytes();
  }
  std::string text(const WireReader& field) const { return std::string(message(field)); }

  /// A list of varints, of which this field is a part: packed, or a single one, which is written again.
  std::string_view packed(const WireReader& field) {
    if (field.type() == 2) return field.bytes();
    if (field.type() != 0) damaged();
    fail<InputError>("{}: numbers of a tensor that are not packed", name_);
  }

  void add_integers(std::vector<int64_t>& list, const WireReader& field) const {
    if (field.type() == 0) {
      list.push_back(static_cast<int64_t>(field.number()));
      return;
    }
    std::string_view rest = message(field);
    uint64_t value = 0;
    while (!rest.empty()) {
      if (!WireReader::varint(rest, value)) damaged();
      list.push_back(static_cast<int64_t>(value));
    }
  }

  void add_floats(std::vector<float>& list, const WireReader& field) const {
    const std::string_view bytes = field.bytes();
    if ((field.type() != 5 && field.type() != 2) || bytes.size() % 4 != 0) damaged();
    if (bytes.empty()) return;
    const size_t before = list.size();
    list.resize(before + bytes.size() / 4);
    std::memcpy(list.data() + before, bytes.data(), bytes.size());
  }

  std::pair<std::string, std::string> entry(std::string_view bytes) {
    std::pair<std::string, std::string> found;
    each(bytes, [&](WireReader& field) {
      if (field.field() == 1) found.first = text(field);
      if (field.field() == 2) found.second = text(field);
    });
    return found;
  }

  void add_opset(std::map<std::string, int64_t>& opsets, std::string_view bytes) {
    std::string domain;
    int64_t version = 0;
    each(bytes, [&](WireReader& field) {
      if (field.field() == 1) domain = text(field);
      if (field.field() == 2) version = integer(field);
    });
    if (domain == "ai.onnx") domain.clear();
    if (domain.empty() && version > kNewestOpset)
      fail<InputError>("{}: is of ONNX's operator set {}; those to {} are known", name_, version,
                       kNewestOpset);
    opsets[domain] = version;
  }

  GraphProto graph(std::string_view bytes, int depth) {
    if (depth > kDeepest) fail<InputError>("{}: graphs lie more than {} deep in each other", name_, kDeepest);
    GraphProto graph;
    each(bytes, [&](WireReader& field) {
      if (field.field() == 1) graph.nodes.push_back(node(message(field), depth));
      if (field.field() == 5) graph.initialisers.push_back(tensor(message(field)));
      if (field.field() == 11) graph.inputs.push_back(value_info(message(field)));
      if (field.field() == 12) graph.outputs.push_back(value_info(message(field)));
      if (field.field() == 15) graph.sparse.push_back(sparse(message(field)));
    });
    return graph;
  }

  NodeProto node(std::string_view bytes, int depth) {
    NodeProto node;
    each(bytes, [&](WireReader& field) {
      if (field.field() == 1) node.inputs.push_back(text(field));
      if (field.field() == 2) node.outputs.push_back(text(field));
      if (field.field() == 3) node.name = text(field);
      if (field.field() == 4) node.op_type = text(field);
      if (field.field() == 5) node.attributes.push_back(attribute(message(field), depth));
      if (field.field() == 7) node.domain = text(field);
      if (field.field() == 8) node.overload = text(field);
    });
    if (node.domain == "ai.onnx") node.domain.clear();
    return node;
  }

  AttributeProto attribute(std::string_view bytes, int depth) {
    AttributeProto attribute;
    each(bytes, [&](WireReader& field) {
      if (field.field() == 1) attribute.name = text(field);
      if (field.field() == 2) {
        std::vector<float> one;
        add_floats(one, field);
        if (one.size() != 1) damaged();
        attribute.number = one[0];
      }
      if (field.field() == 3) attribute.integer = integer(field);
      if (field.field() == 4) attribute.text = text(field);
      if (field.field() == 5) attribute.tensor = tensor(message(field));
      if (field.field() == 6)
        attribute.graph = std::make_shared<GraphProto>(graph(message(field), depth + 1));
      if (field.field() == 7) add_floats(attribute.numbers, field);
      if (field.field() == 8) add_integers(attribute.integers, field);
      if (field.field() == 9) attribute.texts.push_back(text(field));
      if (field.field() == 21) attribute.refers_to = text(field);
      if (field.field() == 22) attribute.sparse = sparse(message(field));
    });
    return attribute;
  }

  SparseTensorProto sparse(std::string_view bytes) {
    SparseTensorProto sparse;
    each(bytes, [&](WireReader& field) {
      if (field.field() == 1) sparse.values = tensor(message(field));
      if (field.field() == 2) sparse.indices = tensor(message(field));
      if (field.field() == 3) add_integers(sparse.dims, field);
    });
    return sparse;
  }

  ValueInfo value_info(std::string_view bytes) {
    ValueInfo info;
    each(bytes, [&](WireReader& field) {
      if (field.field() == 1) info.name = text(field);
      if (field.field() != 2) return;
      each(message(field), [&](WireReader& type) {
        if (type.field() == 1) info.form = ValueInfo::Form::tensor;
        if (type.field() == 4) info.form = ValueInfo::Form::sequence;
        if (type.field() == 9) info.form = ValueInfo::Form::optional;
        if (type.field() == 1) tensor_type(info, message(type));
      });
    });
    return info;
  }

  void tensor_type(ValueInfo& info, std::string_view bytes) {
    each(bytes, [&](WireReader& field) {
      if (field.field() == 1) info.data_type = integer(field);
      if (field.field() != 2) return;
      info.has_shape = true;
      each(message(field), [&](WireReader& dim) {
        if (dim.field() != 1) return;
        ValueInfo::Dimension& dimension = info.shape.emplace_back();
        each(message(dim), [&](WireReader& part) {
          if (part.field() == 1) dimension.size = integer(part);
          if (part.field() == 2) dimension.name = text(part);
        });
      });
    });
  }

  FunctionProto function(std::string_view bytes) {
    FunctionProto function;
    each(bytes, [&](WireReader& field) {
      if (field.field() == 1) function.name = text(field);
      if (field.field() == 4) function.inputs.push_back(text(field));
      if (field.field() == 5) function.outputs.push_back(text(field));
      if (field.field() == 7) function.nodes.push_back(node(message(field), 0));
      if (field.field() == 9) add_opset(function.opsets, message(field));
      if (field.field() == 10) function.domain = text(field);
      if (field.field() == 11) function.defaults.push_back(attribute(message(field), 0));
      if (field.field() == 13) function.overload = text(field);
    });
    return function;
  }

  std::string name_;
};

}  // namespace

const AttributeProto* NodeProto::find(std::string_view attribute) const {
  for (const AttributeProto& each : attributes)
    if (each.name == attribute) return &each;
  return nullptr;
}

std::string as_word(std::string name) {
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) ? "_" + name : name;
}

namespace {

/// Names each dimension without a number: as the model does, else by its place, as a word. What the model
/// tells apart stays apart.
void name_dimensions(GraphProto& graph) {
  std::map<std::string, std::string> words;
  std::set<std::string> taken;
  const auto each = [&](const auto& visit) {
    for (std::vector<ValueInfo>* values : {&graph.inputs, &graph.outputs})
      for (ValueInfo& value : *values)
        for (size_t axis = 0; axis < value.shape.size(); ++axis) {
          ValueInfo::Dimension& dim = value.shape[axis];
          if (dim.size >= 0) continue;
          if (dim.name.empty()) dim.name = fmt::format("{}_{}", value.name, axis);
          visit(dim.name);
        }
  };
  each([&](const std::string& name) {
    if (as_word(name) == name) words[name] = name, taken.insert(name);
  });
  each([&](std::string& name) {
    std::string& word = words[name];
    for (int k = 1; word.empty(); ++k) {
      const std::string tried = k == 1 ? as_word(name) : fmt::format("{}_{}", as_word(name), k);
      if (taken.insert(tried).second) word = tried;
    }
    name = word;
  });
}

}  // namespace

namespace {

/// Calls use(name) for each value that a node and its graphs read.
template <typename Use>
void each_read(const NodeProto& node, const Use& use) {
  for (const std::string& name : node.inputs) use(name);
  for (const AttributeProto& attribute : node.attributes) {
    if (!attribute.graph) continue;
    for (const NodeProto& inner : attribute.graph->nodes) each_read(inner, use);
    for (const ValueInfo& output : attribute.graph->outputs) use(output.name);
  }
}

/// The nodes as they are, but each behind those whose values it reads: ONNX wants that, and tools that append
/// nodes (onnxruntime's float16) forget it. Where nodes wait for each other they stay as they are.
void put_in_order(std::vector<NodeProto>& nodes) {
  std::map<std::string, size_t, std::less<>> given_by;
  for (size_t i = 0; i < nodes.size(); ++i)
    for (const std::string& name : nodes[i].outputs)
      if (!name.empty()) given_by.emplace(name, i);
  std::vector<std::vector<size_t>> readers(nodes.size());
  std::vector<size_t> waits(nodes.size(), 0);
  bool in_order = true;
  for (size_t i = 0; i < nodes.size(); ++i)
    each_read(nodes[i], [&](const std::string& name) {
      const auto given = given_by.find(name);
      if (given == given_by.end() || given->second == i) return;
      in_order = in_order && given->second < i;
      readers[given->second].push_back(i);
      ++waits[i];
    });
  if (in_order) return;
  std::set<size_t> ready;
  for (size_t i = 0; i < nodes.size(); ++i)
    if (waits[i] == 0) ready.insert(i);
  std::vector<size_t> order;
  while (!ready.empty()) {
    const size_t first = *ready.begin();
    ready.erase(ready.begin());
    order.push_back(first);
    for (const size_t reader : readers[first])
      if (--waits[reader] == 0) ready.insert(reader);
  }
  if (order.size() != nodes.size()) return;
  std::vector<NodeProto> sorted;
  for (const size_t i : order) sorted.push_back(std::move(nodes[i]));
  nodes = std::move(sorted);
}

}  // namespace

Model parse_model(std::string_view bytes, const std::string& name) {
  Model model = Parser(name).model(bytes);
  if (model.opsets.empty() && model.graph.nodes.empty() && model.graph.outputs.empty())
    fail<InputError>("{}: the file is damaged or no ONNX model", name);
  name_dimensions(model.graph);
  put_in_order(model.graph.nodes);
  return model;
}

TensorProto parse_tensor(std::string_view bytes, const std::string& name) {
  return Parser(name).tensor(bytes);
}

Model read_model(const std::filesystem::path& path) {
  auto file = std::make_shared<MappedFile>(path);
  Model model =
      parse_model({reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()}, path.string());
  model.folder = std::filesystem::absolute(path).parent_path();  // wherever one goes meanwhile
  model.mapped = file->bytes().data();
  model.bytes = std::move(file);
  return model;
}

}  // namespace millrace::onnx
