// A built model (.mill).
#include "model_formats/mill.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include <millrace/operator.h>
#include <millrace/version.h>

#include "backend/cpu/codegen/object_cache.h"
#include "backend/cpu/kernel_sources.h"
#include "backend/cpu/onednn/matmul.h"
#include "backend/ref/evaluate.h"
#include "base/cpu.h"
#include "base/format.h"
#include "base/section_file.h"
#include "model_formats/sized_text.h"
#include "session/format.h"
#include "target/shared_constants.h"

namespace millrace::mill {
namespace {

using nlohmann::json;

constexpr size_t kMostValues = 1 << 20;  // in any list of the description

/// A part of a section.
struct Place {
  uint64_t offset = 0, bytes = 0;
};

/// What the file holds. Nothing in it is trusted until it was looked at; checksums say that it is what was
/// written, not that it was written in good faith.
class Artifact {
 public:
  explicit Artifact(const std::filesystem::path& path)
      : mapping_(std::make_shared<SectionFile>(path, kMagic, kVersion)), file_(*mapping_) {
    const std::string_view text = file_.text("description", true);
    const json all = json::parse(text, nullptr, false);
    if (all.is_discarded() || !all.is_object()) damaged("its description is no JSON object");
    try {
      read(all);
    } catch (const json::exception& e) {
      damaged("{}", e.what());
    }
  }

  SessionModel model(const std::shared_ptr<const Artifact>& self) const {
    SessionModel model;
    model.inputs = inputs_;
    model.outputs = outputs_;
    model.independent = independent_;
    model.compile.precision = precision_;
    model.compile.exact = exact_;
    model.compile.ready = true;
    // Which kernels were faster on another CPU says nothing here.
    const bool same_cpu = cpu_ == cpu_name(), same_kernels = kernels_ == cpu::kernel_sources();
    if (same_cpu) {
      onednn::prepare_for(choices_);
      model.compile.choices = choices_;
    } else {
      model.notes.push_back(fmt::format(
          "{}: was built on {}: kernels are chosen and compiled anew for this CPU", file_.name(), cpu_));
    }
    if (same_cpu && !same_kernels)
      model.notes.push_back(fmt::format(
          "{}: was built by another Millrace: weights are packed anew whenever it is opened; build it again",
          file_.name()));
    const auto offered = codegen::offer_objects(objects());
    const auto constants =
        std::make_shared<const OfferedConstants>(offered_constants(same_cpu && same_kernels));
    model.require_unchanged = [self] { self->file_.require_unchanged(); };
    model.graph = [self, offered, constants](const Bindings& sizes) {
      self->file_.require_unchanged();
      return self->graph(sizes);
    };
    return model;
  }

  void verify() const {
    file_.verify();
    (void)objects();
    for (const auto& [sizes, place] : graphs_) (void)graph(sizes);
  }

  std::vector<Bindings> sizes() const {
    std::vector<Bindings> all;
    for (const auto& each : graphs_) all.push_back(each.first);
    return all;
  }

  std::vector<std::string> lines() const {
    std::vector<std::string> all = {
        fmt::format("built by Millrace {} on {}, {}", written_by_, cpu_, precision_)};
    for (const auto& [sizes, place] : graphs_) all.push_back("compiled for " + words(sizes));
    if (!any_.empty()) all.push_back("compiles for other sizes when they are asked for" + ranges());
    for (const Section& section : file_.sections())
      all.push_back(fmt::format("section {}: {} bytes", section.name, section.size));
    return all;
  }

 private:
  template <typename... Args>
  [[noreturn]] void damaged(fmt::format_string<Args...> pattern, Args&&... args) const {
    fail<InputError>("{}: is damaged: {}", file_.name(), fmt::format(pattern, std::forward<Args>(args)...));
  }

  static std::string words(const Bindings& sizes) {
    std::string text;
    for (const auto& [name, size] : sizes)
      text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name, size);
    return text.empty() ? "fixed sizes" : text;
  }

  std::string ranges() const {
    std::string text;
    for (const auto& [name, range] : any_sizes_)
      text += fmt::format("{} {} from {} to {}", text.empty() ? ":" : ",", name, range.first, range.second);
    return text;
  }

  const json& list(const json& all, const char* name) const {
    const json& found = all.at(name);
    if (!found.is_array() || found.size() > kMostValues) damaged("'{}' is no list", name);
    return found;
  }

  Place place(const json& item, uint64_t bytes, uint64_t section) const {
    const Place found{item.at("offset").get<uint64_t>(), bytes};
    if (found.offset > section || bytes > section - found.offset)
      damaged("a part lies outside of its section");
    return found;
  }

  Type type(const json& item) const {
    try {
      return Type::parse(item.at("type").get<std::string>());
    } catch (const Error& e) {
      damaged("{}", e.what());
    }
  }

  std::vector<SessionValue> values(const json& items) const {
    std::vector<SessionValue> all;
    for (const json& item : items)  // whether there is such an axis, a session looks at
      all.push_back({item.at("name").get<std::string>(), type(item), item.value("data_axis", -1)});
    return all;
  }

  void read(const json& all) {
    written_by_ = all.at("millrace").get<std::string>();
    kernels_ = all.at("kernels").get<std::string>();
    cpu_ = all.at("cpu").get<std::string>();
    precision_ = all.at("precision").get<std::string>();
    exact_ = all.at("exact").get<bool>();
    inputs_ = values(list(all, "inputs"));
    outputs_ = values(list(all, "outputs"));
    for (const json& name : list(all, "independent")) independent_.push_back(name.get<std::string>());
    choices_ = all.at("choices").get<std::map<std::string, std::string>>();
    const uint64_t graphs = file_.bytes("graphs", true).size();
    for (const json& item : list(all, "graphs")) {
      Bindings sizes;
      for (const auto& [name, size] : item.at("sizes").items()) sizes[name] = size.get<int64_t>();
      graphs_.emplace_back(std::move(sizes), place(item, item.at("bytes").get<uint64_t>(), graphs));
    }
    if (graphs_.empty()) damaged("it has no graph");
    any_ = file_.text("any", true);
    for (const auto& [name, range] : all.at("any_sizes").items())
      any_sizes_[name] = {range.at(0).get<int64_t>(), range.at(1).get<int64_t>()};
    std::set<const void*> places;
    for (const json& item : list(all, "constants")) {
      constants_.push_back(array(item, "weights"));
      if (constants_.back().bytes() > 0 && !places.insert(constants_.back().data()).second)
        damaged("two constants lie in one place");
    }
    for (const json& item : list(all, "packed")) {
      const auto constant = item.at("constant").get<uint64_t>();
      if (constant >= constants_.size()) damaged("a form is of a constant that is not there");
      packed_[constant].push_back({item.at("form").get<std::string>(), array(item, "packed")});
    }
  }

  /// An array that lies in a section. Nobody writes to it. The file stays mapped for as long as somebody has
  /// the array.
  Array array(const json& item, std::string_view section) const {
    const std::span<const uint8_t> all = file_.bytes(section, false);
    const Type of = type(item);
    if (!of.shape.is_static() || !of.fault().empty()) damaged("an array cannot be {}", of.str());
    const Place at = place(item, static_cast<uint64_t>(of.bytes()), all.size());
    if (at.offset % kSectionAlign != 0) damaged("an array lies askew");
    return {of, const_cast<uint8_t*>(all.data() + at.offset), mapping_};
  }

  /// What kernels need not make anew: with the packed forms, or without.
  std::vector<OfferedConstant> offered_constants(bool packed) const {
    std::vector<OfferedConstant> all;
    for (size_t i = 0; i < constants_.size(); ++i) {
      if (constants_[i].bytes() == 0) continue;
      OfferedConstant& each = all.emplace_back(
          OfferedConstant{constants_[i], fmt::format("{} constant {}", file_.identity(), i), {}});
      const auto forms = packed_.find(i);
      if (packed && forms != packed_.end()) each.forms = forms->second;
    }
    return all;
  }

  /// The file's objects, by their keys. Every byte is checked: they are run.
  std::map<std::string, std::string_view, std::less<>> objects() const {
    std::string_view rest = file_.text("objects", true);
    std::map<std::string, std::string_view, std::less<>> all;
    const auto take = [&] {
      uint64_t size = 0;
      if (rest.size() < sizeof size) damaged("its objects end too early");
      std::memcpy(&size, rest.data(), sizeof size);
      rest.remove_prefix(sizeof size);
      if (size > rest.size()) damaged("its objects end too early");
      const std::string_view part = rest.substr(0, size);
      rest.remove_prefix(size);
      return part;
    };
    while (!rest.empty()) {
      const std::string_view key = take();
      all.emplace(key, take());
    }
    return all;
  }

  Graph graph(const Bindings& sizes) const {
    const auto at =
        std::find_if(graphs_.begin(), graphs_.end(), [&](const auto& each) { return each.first == sizes; });
    if (at == graphs_.end()) return graph_of_others(sizes);
    const std::string_view text = file_.text("graphs", false).substr(at->second.offset, at->second.bytes);
    Graph graph;
    try {
      graph = with_constants(Graph::parse(text));
    } catch (const InternalError&) {
      throw;
    } catch (const Error& e) {
      damaged("{}", e.what());
    }
    check_ports(graph, sizes);
    return graph;
  }

  /// For sizes that it was not built for: the graph as passes would leave it. Kernels are chosen as for sizes
  /// that it was built for, and have the same packed weights.
  Graph graph_of_others(const Bindings& sizes) const {
    if (any_.empty()) {
      std::string there;
      for (const auto& each : graphs_) there += (there.empty() ? "" : "; ") + words(each.first);
      fail<InputError>(
          "{}: was not built for {}; it was for {}, and its graph is another one for each: build it for "
          "these, "
          "too",
          file_.name(), words(sizes), there);
    }
    Graph graph;
    try {
      for (const auto& [name, size] : sizes)
        if (size < 1) fail<InputError>("'{}' is {}", name, size);
      for (const auto& [name, range] : any_sizes_) {
        const auto given = sizes.find(name);
        if (given != sizes.end() && (given->second < range.first || given->second > range.second))
          fail<InputError>(
              "its graph for other sizes was tried for '{}' from {} to {}: build it for these, too", name,
              range.first, range.second);
      }
      graph = cut(with_constants(Graph::parse(text_at(any_, sizes))));
    } catch (const InternalError&) {
      throw;
    } catch (const Error& e) {
      fail<InputError>("{}: cannot be run for {}: {}", file_.name(), words(sizes), e.what());
    }
    check_ports(graph, sizes);
    return graph;
  }

  /// Which constant an input stands for; nullopt: it is one of the model's.
  std::optional<size_t> constant_number(const std::string& name) const {
    if (!name.starts_with(kConstant)) return std::nullopt;
    size_t number = 0;
    const char* const begin = name.data() + kConstant.size();
    const auto [end, error] = std::from_chars(begin, name.data() + name.size(), number);
    if (error != std::errc() || end == begin || number >= constants_.size())
      damaged("a graph wants a constant that is not there");
    return number;
  }

  Graph with_constants(const Graph& graph) const {
    Rewriter rewrite(graph);
    size_t inputs = 0;
    for (int i = 0; i < graph.size(); ++i) {
      const Value value{i, 0};
      if (!graph.is_input(value)) {
        rewrite.copy(i);
        continue;
      }
      rewrite.graph().set_origin(graph.node(i).origin);
      const std::string& name = graph.input_names()[inputs++];
      const std::optional<size_t> number = constant_number(name);
      if (!number) {
        rewrite.set(value, rewrite.graph().input(name, graph.type(value)));
        continue;
      }
      const Array& constant = constants_[*number];
      if (constant.type() != graph.type(value))
        damaged("constant {} is {}, not {}", *number, constant.type().str(), graph.type(value).str());
      rewrite.set(value, rewrite.graph().constant(constant));
    }
    return rewrite.finish();
  }

  /// The beginnings of its constants (sized_constants.h) are constants of this graph.
  static Graph cut(const Graph& graph) {
    Rewriter rewrite(graph);
    rewrite.go_through([&](int i) {
      const Node& node = graph.node(i);
      const Array* const whole = node.operands.size() == 1 ? graph.constant_value(node.operands[0]) : nullptr;
      if (!whole || node.op->op_class != OpClass::movement || node.op->broadcasts ||
          node.types[0].shape.count() > whole->count())
        return false;
      rewrite.graph().set_origin(node.origin);
      rewrite.set({i, 0}, rewrite.graph().constant(ref::evaluate_node(graph, node, std::span(whole, 1))[0]));
      return true;
    });
    return rewrite.finish();
  }

  /// The graph's inputs and outputs are the model's.
  void check_ports(const Graph& graph, const Bindings& sizes) const {
    const auto sizes_of_data = static_cast<size_t>(std::count_if(
        outputs_.begin(), outputs_.end(), [](const SessionValue& value) { return value.data_axis >= 0; }));
    if (graph.inputs().size() != inputs_.size() || graph.outputs().size() != outputs_.size() + sizes_of_data)
      damaged("a graph has other inputs and outputs than the model");
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const Type should{inputs_[i].type.dtype, inputs_[i].type.shape.specialise(sizes)};
      if (graph.type(graph.inputs()[i]) != should) damaged("a graph's input is not {}", should.str());
    }
    // (Their shapes need not be known.)
    for (size_t i = 0; i < outputs_.size(); ++i)
      if (const DType is = graph.type(graph.outputs()[i]).dtype; is != outputs_[i].type.dtype)
        damaged("a graph's output is of {}, not {}", is.name(), outputs_[i].type.dtype.name());
  }

  std::shared_ptr<SectionFile> mapping_;  // which arrays keep, too
  const SectionFile& file_;
  std::string written_by_, cpu_, kernels_, precision_;
  bool exact_ = false;
  std::vector<SessionValue> inputs_, outputs_;
  std::vector<std::string> independent_;
  std::map<std::string, std::string> choices_;
  std::vector<std::pair<Bindings, Place>> graphs_;
  std::string_view any_;  // the graph for any sizes (sized_text.h), or empty
  std::map<std::string, std::pair<int64_t, int64_t>> any_sizes_;  // those that it is for
  std::vector<Array> constants_;
  std::map<uint64_t, std::vector<NamedForm>> packed_;  // by constant
};

}  // namespace

SessionModel load(const std::filesystem::path& path) {
  const auto artifact = std::make_shared<const Artifact>(path);
  return artifact->model(artifact);
}

void verify(const std::filesystem::path& path) { Artifact(path).verify(); }

std::vector<Bindings> sizes_of(const std::filesystem::path& path) { return Artifact(path).sizes(); }

std::vector<std::string> describe(const std::filesystem::path& path) { return Artifact(path).lines(); }

}  // namespace millrace::mill

namespace millrace {

MILLRACE_MODEL_FORMAT(mill){"mill", "a built model",
                            [](const std::filesystem::path& path) {
                              return std::filesystem::is_regular_file(path) &&
                                     SectionFile::begins(path, mill::kMagic);
                            },
                            mill::load};

}  // namespace millrace
