#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <xxhash.h>

#include <millrace/version.h>

#include "backend/cpu/codegen/jit.h"
#include "backend/cpu/codegen/object_cache.h"
#include "backend/cpu/kernel_sources.h"
#include "base/cpu.h"
#include "base/format.h"
#include "base/section_file.h"
#include "model_formats/mill.h"
#include "model_formats/sized_constants.h"
#include "model_formats/sized_text.h"
#include "runtime/ready.h"
#include "session/sizes.h"
#include "session/summary.h"

namespace millrace::mill {
namespace {

using nlohmann::json;

std::span<const uint8_t> bytes_of(const Array& array) {
  return {static_cast<const uint8_t*>(array.data()), static_cast<size_t>(array.bytes())};
}

/// Arrays of all graphs: equal ones are there once.
class Weights {
 public:
  int64_t number_of(const Array& array) {
    if (const std::optional<int64_t> same = itself(array)) return *same;
    const XXH128_hash_t hash = XXH3_128bits(array.data(), static_cast<size_t>(array.bytes()));
    std::vector<int64_t>& like = by_hash_[{hash.high64, hash.low64}];
    for (const int64_t number : like)
      if (arrays_[static_cast<size_t>(number)].identical(array)) return number;
    like.push_back(static_cast<int64_t>(arrays_.size()));
    by_place_.emplace(array.data(), like.back());
    arrays_.push_back(array);
    return like.back();
  }
  const std::vector<Array>& arrays() const { return arrays_; }
  /// The one that is there already and equal; else the same.
  Array known(const Array& array) const {
    if (itself(array)) return array;
    const XXH128_hash_t hash = XXH3_128bits(array.data(), static_cast<size_t>(array.bytes()));
    const auto like = by_hash_.find({hash.high64, hash.low64});
    if (like != by_hash_.end())
      for (const int64_t number : like->second)
        if (arrays_[static_cast<size_t>(number)].identical(array))
          return arrays_[static_cast<size_t>(number)];
    return array;
  }

 private:
  /// The number of an array that lies where one of these does: its bytes need not be read again.
  std::optional<int64_t> itself(const Array& array) const {
    const auto at = by_place_.find(array.data());
    if (at == by_place_.end() || arrays_[static_cast<size_t>(at->second)].type() != array.type())
      return std::nullopt;
    return at->second;
  }

  std::vector<Array> arrays_;
  std::map<std::pair<uint64_t, uint64_t>, std::vector<int64_t>> by_hash_;
  std::map<const void*, int64_t> by_place_;
};

/// The same graph; constants that are known lie there, not in memory once more.
Graph with_known_constants(const Graph& graph, const Weights& weights) {
  Rewriter rewrite(graph);
  rewrite.go_through([&](int i) {
    const Array* const constant = graph.constant_value({i, 0});
    if (!constant || constant->bytes() < kLeastOutside) return false;
    rewrite.graph().set_origin(graph.node(i).origin);
    rewrite.set({i, 0}, rewrite.graph().constant(weights.known(*constant)));
    return true;
  });
  return rewrite.finish();
}

/// The graph with its large constants as inputs that say which they are. Those of `sized` are made of what is
/// kept of them where the graph runs.
Graph without_constants(const Graph& graph, Weights& weights, const std::vector<SizedConstant>& sized = {}) {
  Rewriter rewrite(graph);
  size_t inputs = 0;
  const auto written = [&](const Array& constant, int i) {
    if (constant.bytes() < kLeastOutside) return rewrite.graph().constant(constant);
    return rewrite.graph().input(fmt::format("{}{}.{}", kConstant, weights.number_of(constant), i),
                                 constant.type());
  };
  for (int i = 0; i < graph.size(); ++i) {
    const Value value{i, 0};
    rewrite.graph().set_origin(graph.node(i).origin);
    const Array* const constant = graph.constant_value(value);
    if (graph.is_input(value)) {
      const std::string& name = graph.input_names()[inputs++];
      if (name.starts_with(kConstant)) fail<InputError>("an input's name begins with a control character");
      rewrite.set(value, rewrite.graph().input(name, graph.type(value)));
    } else if (constant && !sized.empty() && !sized.at(static_cast<size_t>(i)).kept.empty()) {
      const SizedConstant& own = sized[static_cast<size_t>(i)];
      rewrite.set(value, write_sized(rewrite.graph(), written(own.kept, i), own, constant->shape()));
    } else if (constant) {
      rewrite.set(value, written(*constant, i));
    } else {
      rewrite.copy(i);
    }
  }
  return rewrite.finish();
}

/// The graph with constants in the place of those inputs for which `constant` gives one, by their numbers.
Graph with_constants(const Graph& graph, const std::function<const Array*(size_t)>& constant) {
  Rewriter rewrite(graph);
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const Value input = graph.inputs()[i];
    const Array* const known = constant(i);
    rewrite.set(input, known ? rewrite.graph().constant(*known)
                             : rewrite.graph().input(graph.input_names()[i], graph.type(input)));
  }
  for (int i = 0; i < graph.size(); ++i)
    if (!graph.is_input({i, 0})) rewrite.copy(i);
  return rewrite.finish();
}

/// The model's graph, with weights beside it as constants, to be folded and packed.
Graph whole_graph(const SessionModel& model, const Bindings& sizes) {
  Graph graph = model.graph(sizes);
  if (model.weights.empty()) return graph;
  return with_constants(graph, [&](size_t i) {
    return i < model.inputs.size() ? nullptr : &model.weights.at(i - model.inputs.size());
  });
}

// Sizes that a graph for any is learnt from: so large that nothing is folded for being small, and no
// multiples of each other; for the next dimension they begin elsewhere.
constexpr int64_t kExamples[4][4] = {
    {37, 61, 53, 41}, {43, 59, 47, 71}, {67, 73, 83, 79}, {113, 101, 97, 127}};
// Sizes that it is tried with, away from these.
constexpr int64_t kSmaller[] = {32, 27, 23, 19, 16, 13, 11, 9, 8, 7, 6, 5, 4, 3, 2, 1};
constexpr int64_t kLarger[] = {300, 2100, 6007, 70001, 1000003};

/// The text for any sizes of graphs that are each for some; nullopt where there is none.
std::optional<std::string> learn_graphs(const std::vector<Bindings>& sizes, const std::vector<Graph>& graphs,
                                        Weights& weights) {
  for (const Graph& graph : graphs)
    if (graph.size() != graphs[0].size()) return std::nullopt;
  const std::vector<SizedConstant> sized = sized_constants(graphs);
  std::vector<std::pair<Bindings, std::string>> texts;
  for (size_t i = 0; i < graphs.size(); ++i)
    texts.emplace_back(sizes[i], without_constants(graphs[i], weights, sized).str());
  return learn_text(texts);
}

/// What is kept of constants of which larger sizes need more, once of equal ones.
int64_t grown_bytes(const std::vector<Graph>& graphs) {
  Weights kept;
  for (const SizedConstant& each : sized_constants(graphs))
    if (each.grows) (void)kept.number_of(each.kept);
  int64_t bytes = 0;
  for (const Array& array : kept.arrays()) bytes += array.bytes();
  return bytes;
}

/// How far two arrays of one type are apart, as a part of the larger one's largest number.
double apart(const Array& a, const Array& b) {
  double most = 0, off = 0;
  for (int64_t i = 0; i < a.count(); ++i) {
    most = std::max({most, std::abs(a.at(i)), std::abs(b.at(i))});
    off = std::max(off, std::abs(a.at(i) - b.at(i)));
  }
  return off == 0 ? 0 : off / most;
}

std::vector<Array> made_up_inputs(const SessionModel& model, const Bindings& sizes) {
  std::vector<Array> inputs;
  for (const SessionValue& input : model.inputs) {
    Array& array = inputs.emplace_back(input.type.dtype, input.type.shape.specialise(sizes));
    fill_made_up(array, 3, inputs.size() - 1);
  }
  return inputs;
}

/// Whether a learnt graph says of made-up inputs of these sizes what the model says. That is no proof.
bool says_the_same(SessionModel model, const std::string& learnt, const Weights& weights,
                   const CompileOptions& compile, const Bindings& sizes) {
  const std::vector<Array> inputs = made_up_inputs(model, sizes);
  model.compile = compile;
  model.compile.bindings.clear();
  model.independent.clear();
  SessionModel open = model;
  open.weights.clear();
  open.compile.ready = true;
  open.graph = [&](const Bindings& asked) {
    const Graph graph = Graph::parse(text_at(learnt, asked));
    return with_constants(graph, [&](size_t i) {
      const std::string& name = graph.input_names()[i];
      return name.starts_with(kConstant) ? &weights.arrays().at(std::stoul(name.substr(kConstant.size())))
                                         : nullptr;
    });
  };
  const std::vector<Array> should = Session(std::move(model)).run(inputs),
                           is = Session(std::move(open)).run(inputs);
  const double tolerance = compile.precision == "fp32" ? 1e-3 : 3e-2;
  for (size_t o = 0; o < should.size(); ++o)
    if (is[o].type() != should[o].type() || !(apart(is[o], should[o]) <= tolerance)) return false;
  return true;
}

int64_t constant_bytes(const Graph& graph) {
  int64_t bytes = 0;
  for (int i = 0; i < graph.size(); ++i)
    if (const Array* constant = graph.constant_value({i, 0})) bytes += constant->bytes();
  return bytes;
}

/// The sizes of one dimension that are known to be alike, and whether constants grow with them.
struct Known {
  int64_t least, most;
  bool grows;
};

/// For which sizes of `name` the model does the same as for the examples. It is asked for its graph before
/// any pass, where sizes are numbers and nothing else, unless the model itself treats some in another way (a
/// least number of two, a slice that ends somewhere): the examples alone would not show that. For few it may
/// be another graph that says the same (nothing is repeated for one); `says_the_same` tells.
Known same_for(const SessionModel& model, const std::string& name, std::vector<Bindings> sizes,
               std::vector<Graph> graphs, Weights& weights,
               const std::function<bool(const Bindings&)>& says_the_same) {
  int64_t least = sizes[0][name], most = least;
  bool grows = false;
  for (const Bindings& example : sizes) {
    least = std::min(least, example.at(name));
    most = std::max(most, example.at(name));
  }
  sizes.push_back(sizes[0]);
  graphs.emplace_back();
  const auto same = [&](int64_t size) {
    sizes.back()[name] = size;
    try {
      graphs.back() = with_known_constants(whole_graph(model, sizes.back()), weights);
      return learn_graphs(sizes, graphs, weights) || (size < sizes[0][name] && says_the_same(sizes.back()));
    } catch (const InternalError&) {
      throw;
    } catch (const Error&) {
      return false;  // it cannot be had for so many
    }
  };
  for (const int64_t size : kSmaller) {
    if (!same(size)) break;
    least = size;
  }
  // What grows is kept up to the largest size: no more than the model has anyway.
  const int64_t model_bytes = constant_bytes(graphs[0]),
                much = std::clamp(model_bytes, int64_t{1} << 22, int64_t{1} << 25);
  const int64_t grown = grown_bytes({graphs.begin(), graphs.end() - 1});
  const auto holds = [&](int64_t size) {
    if (!same(size)) return false;
    const int64_t bytes = grown_bytes(graphs);
    grows = grows || bytes > grown;
    return !grows || bytes <= much;
  };
  for (int64_t size : kLarger) {
    if (holds(size)) {
      most = size;
      // What is repeated (a bias for each row) is written out here, and would fill the memory soon.
      if (constant_bytes(graphs.back()) > model_bytes + (int64_t{1} << 25)) break;
      continue;
    }
    while (size - most > 1) {  // where it ends
      const int64_t middle = most + (size - most) / 2;
      (holds(middle) ? most : size) = middle;
    }
    break;
  }
  return {least, most, grows};
}

/// Where the model decides something by its sizes, which examples of them show in part at best; else empty.
std::string decided_by_sizes(const SessionModel& model, const std::vector<Bindings>& examples) {
  if (!model.decisions) return {};
  const std::vector<std::string> first = model.decisions(examples[0]);
  for (const Bindings& sizes : examples) {
    const std::vector<std::string> others = model.decisions(sizes);
    for (size_t i = 0; i < std::max(first.size(), others.size()); ++i)
      if (i >= first.size() || i >= others.size() || first[i] != others[i])
        return fmt::format("its graph is not the same for all: it depends on {}",
                           i < first.size() ? first[i] : others[i]);
  }
  return {};
}

/// The graph for any sizes between some of each dimension.
struct OpenGraph {
  std::string text;  // sized_text.h; empty: there is none, and `why_not` says why
  std::string why_not;
  std::map<std::string, std::pair<int64_t, int64_t>> sizes;
};

OpenGraph learn_graph(const SessionModel& model, CompileOptions compile, Weights& weights) {
  std::set<std::string> names;
  for (const SessionValue& input : model.inputs)
    for (const Dim& dim : input.type.shape) names.insert(dim.names().begin(), dim.names().end());
  OpenGraph open;
  if (names.empty()) return open;
  Weights all = weights;
  std::vector<Bindings> sizes;
  std::vector<Graph> plain, ready;
  try {
    for (const auto& example : kExamples) {
      Bindings& own = sizes.emplace_back();
      for (const std::string& name : names) {
        const size_t place = own.size();
        own[name] = example[place % 4];
      }
    }
    open.why_not = decided_by_sizes(model, sizes);
    if (!open.why_not.empty()) return open;
    for (const Bindings& own : sizes) {
      compile.bindings = own;
      plain.push_back(with_known_constants(whole_graph(model, own), weights));
      ready.push_back(with_known_constants(make_ready_untimed(plain.back(), compile), weights));
    }
    std::optional<std::string> learnt = learn_graphs(sizes, ready, all);
    if (!learnt) {
      open.why_not = "its graph is not the same for all";
      return open;
    }
    Weights tried = all;
    Bindings largest = sizes[0];
    bool grows = false;
    for (const std::string& name : names) {
      const Known known = same_for(model, name, sizes, plain, tried, [&](const Bindings& some) {
        return says_the_same(model, *learnt, all, compile, some);
      });
      open.sizes[name] = {known.least, known.most};
      if (known.grows) largest[name] = known.most;
      grows = grows || known.grows;
    }
    if (grows) {  // once more, with all of it
      compile.bindings = largest;
      sizes.push_back(largest);
      ready.push_back(
          with_known_constants(make_ready_untimed(whole_graph(model, largest), compile), weights));
      all = weights;
      learnt = learn_graphs(sizes, ready, all);
    }
    if (!learnt) {
      open.why_not = "its graph is not the same for all";
      return open;
    }
    weights = std::move(all);
    open.text = *learnt;
  } catch (const InternalError&) {
    throw;
  } catch (const Error& e) {
    open.why_not = e.what();
  }
  return open;
}

json values_json(const std::vector<SessionValue>& values) {
  json list = json::array();
  for (const SessionValue& value : values) {
    list.push_back({{"name", value.name}, {"type", value.type.str()}});
    if (value.data_axis >= 0) list.back()["data_axis"] = value.data_axis;
  }
  return list;
}

/// Keys and objects, each behind its size.
std::string objects_section(const std::map<std::string, std::string>& objects) {
  std::string text;
  const auto add = [&](std::string_view part) {
    const uint64_t size = part.size();
    text.append(reinterpret_cast<const char*>(&size), sizeof size);
    text += part;
  };
  for (const auto& [key, object] : objects) {
    add(key);
    add(object);
  }
  return text;
}

/// Place `row` of `rows` along the first dimension.
Array one_place(const Array& array, int64_t rows, int64_t row) {
  Shape shape = array.shape();
  shape[0] = shape[0].size() / rows;
  Array one(array.dtype(), shape);
  std::memcpy(one.data(), static_cast<const char*>(array.data()) + row * one.bytes(),
              static_cast<size_t>(one.bytes()));
  return one;
}

bool stands_first(const SessionValue& value, const std::string& name) {
  const Shape& shape = value.type.shape;
  return shape.rank() > 0 && shape[0].names() == std::vector<std::string>{name};
}

/// Tries whether what a model says of three places is what it says of each alone. That is no proof, but what
/// mixes them (a norm over the batch, a softmax along it) shows.
void try_independent(const SessionModel& model, const std::string& name, Bindings sizes) {
  constexpr int64_t rows = 3;
  for (const SessionValue& output : model.outputs)
    if (output.data_axis >= 0)
      fail<InputError>("'{}' cannot be filled up: how large the output '{}' is, depends on data", name,
                       output.name);
    else if (!stands_first(output, name))
      fail<InputError>("'{}' cannot be filled up: it is not the first dimension of the output '{}'", name,
                       output.name);
  if (std::none_of(model.inputs.begin(), model.inputs.end(),
                   [&](const SessionValue& input) { return stands_first(input, name); }))
    fail<InputError>("'{}' cannot be filled up: it is no input's first dimension", name);
  sizes[name] = rows;
  SessionModel plain = model;
  plain.independent.clear();
  const Session session(std::move(plain));
  const std::vector<Array> inputs = made_up_inputs(model, sizes);
  const std::vector<Array> together = session.run(inputs);
  for (int64_t row = 0; row < rows; ++row) {
    std::vector<Array> own;
    for (size_t i = 0; i < inputs.size(); ++i)
      own.push_back(stands_first(model.inputs[i], name) ? one_place(inputs[i], rows, row) : inputs[i]);
    const std::vector<Array> alone = session.run(own);
    for (size_t o = 0; o < alone.size(); ++o) {
      if (!(apart(alone[o], one_place(together[o], rows, row)) <= 1e-3))
        fail<InputError>(
            "'{}' cannot be filled up: of made-up inputs, the model's output '{}' depends on what stands "
            "beside them",
            name, model.outputs[o].name);
    }
  }
}

}  // namespace

void build(const SessionModel& model, const BuildOptions& options, const std::filesystem::path& path) {
  CompileOptions compile = model.compile;
  if (!options.precision.empty()) compile.precision = options.precision;
  if (options.sizes.empty()) fail<InputError>("there are no sizes to build for");
  for (const std::string& name : options.independent)
    if (std::find(model.independent.begin(), model.independent.end(), name) == model.independent.end())
      try_independent(model, name, options.sizes.front());
  if (compile.target != "cpu")
    fail<InputError>("a model is built for the target cpu, not {}", compile.target);
  Weights weights;
  json description = {{"millrace", version()},
                      {"cpu", cpu_name()},
                      {"kernels", cpu::kernel_sources()},
                      {"precision", compile.precision},
                      {"exact", compile.exact},
                      {"inputs", values_json(model.inputs)},
                      {"outputs", values_json(model.outputs)},
                      {"independent", options.independent},
                      {"graphs", json::array()}};
  std::map<std::string, std::string> choices = compile.choices;
  std::string graphs;
  std::map<std::pair<int64_t, std::string>, Array> packed;  // by constant and form
  codegen::forget_unused_code();
  const codegen::RecordedObjects recorded;
  for (const Bindings& sizes : options.sizes) {
    options.report(fmt::format("compiling for {}", sizes_words(sizes)));
    compile.bindings = sizes;
    compile.choices = choices;
    const ReadyGraph ready = make_ready(whole_graph(model, sizes), compile);
    choices.insert(ready.choices.begin(), ready.choices.end());
    for (const PackedConstant& each : ready.packed)
      packed.emplace(std::pair(weights.number_of(each.constant), each.form), each.array);
    const std::string text = without_constants(ready.graph, weights).str();
    json bound = json::object();
    for (const auto& [name, size] : sizes) bound[name] = size;
    description["graphs"].push_back({{"sizes", bound}, {"offset", graphs.size()}, {"bytes", text.size()}});
    graphs += text;
  }
  description["choices"] = choices;
  compile.choices = choices;
  const OpenGraph open = learn_graph(model, compile, weights);
  options.report(!open.text.empty()     ? "other sizes will be compiled when they are asked for"
                 : open.why_not.empty() ? "there are no other sizes"
                                        : "other sizes cannot be run: " + open.why_not);
  description["any_sizes"] = json::object();
  for (const auto& [name, range] : open.sizes) description["any_sizes"][name] = {range.first, range.second};
  SectionWriter writer(path, kMagic, kVersion);
  const auto add_arrays = [&](const std::string& section, const std::vector<Array>& arrays) {
    std::vector<std::span<const uint8_t>> parts;
    for (const Array& array : arrays) parts.push_back(bytes_of(array));
    const std::vector<uint64_t> places = writer.add(section, parts);
    json list = json::array();
    for (size_t i = 0; i < places.size(); ++i)
      list.push_back({{"type", arrays[i].type().str()}, {"offset", places[i]}});
    return list;
  };
  description["constants"] = add_arrays("weights", weights.arrays());
  std::vector<Array> forms;
  for (const auto& [which, array] : packed) forms.push_back(array);
  json& listed = description["packed"] = add_arrays("packed", forms);
  size_t next = 0;
  for (const auto& [which, array] : packed) {
    listed[next]["constant"] = which.first;
    listed[next++]["form"] = which.second;
  }
  writer.add("objects", objects_section(recorded.objects()));
  writer.add("graphs", graphs);
  writer.add("any", open.text);
  writer.add("description", description.dump());
  writer.commit();
}

}  // namespace millrace::mill
