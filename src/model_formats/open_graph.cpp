#include "model_formats/open_graph.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "base/format.h"
#include "model_formats/mill.h"
#include "model_formats/sized_text.h"
#include "runtime/ready.h"
#include "session/sizes.h"
#include "session/summary.h"

namespace millrace::mill {

double apart(const Array& a, const Array& b) {
  double most = 0, off = 0;
  for (int64_t i = 0; i < a.count(); ++i) {
    const double x = a.at(i), y = b.at(i);
    if (std::isnan(x) != std::isnan(y)) return HUGE_VAL;
    if (std::isnan(x) || x == y) continue;
    most = std::max({most, std::abs(x), std::abs(y)});
    off = std::max(off, std::abs(x - y));
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

namespace {

// Sizes that a graph for any is learnt from: so large that nothing is folded for being small, and no
// multiples of each other; for the next dimension they begin elsewhere. The last are the largest of each.
using Examples = int64_t[4][4];
constexpr Examples kExamples = {{37, 61, 53, 41}, {43, 59, 47, 71}, {67, 73, 83, 79}, {113, 101, 97, 127}};
// The same for models whose tables end before.
constexpr Examples kFewer = {{17, 29, 19, 23}, {31, 37, 23, 29}, {41, 43, 37, 31}, {47, 53, 59, 61}};
// Sizes that it is tried with, away from these.
constexpr int64_t kSmaller[] = {32, 27, 23, 20, 19, 18, 17, 16, 15, 14, 13, 12,
                                11, 10, 9,  8,  7,  6,  5,  4,  3,  2,  1};
constexpr int64_t kLarger[] = {128, 300, 2100, 6007, 70001, 1000003};
constexpr int64_t kMuch = int64_t{1} << 25;  // bytes

/// The text for any sizes of graphs that are each for some; nullopt where there is none. Some graph is for
/// the largest of all sizes.
std::optional<std::string> learn_graphs(const std::vector<Bindings>& sizes, const std::vector<Graph>& graphs,
                                        Weights& weights) {
  size_t largest = 0;
  for (size_t i = 1; i < sizes.size(); ++i) {
    if (graphs[i].size() != graphs[0].size()) return std::nullopt;
    bool larger = true;
    for (const auto& [name, size] : sizes[i]) larger = larger && size >= sizes[largest].at(name);
    if (larger) largest = i;
  }
  const std::vector<SizedConstant> sized = sized_constants(graphs, largest);
  std::vector<std::pair<Bindings, std::string>> texts;
  for (size_t i = 0; i < graphs.size(); ++i)
    texts.emplace_back(sizes[i], without_constants(graphs[i], weights, sized).str());
  return learn_text(texts);
}

/// What is kept of constants of which larger sizes need more, once of equal ones. The last graph is for the
/// largest.
int64_t grown_bytes(const std::vector<Graph>& graphs) {
  Weights kept;
  for (const SizedConstant& each : sized_constants(graphs, graphs.size() - 1))
    if (each.grows) (void)kept.number_of(each.kept);
  int64_t bytes = 0;
  for (const Array& array : kept.arrays()) bytes += array.bytes();
  return bytes;
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
  bool grows = false;
};

/// For which sizes the model does the same as for the examples. It is asked for its graph before any pass,
/// where sizes are numbers and nothing else, unless the model itself treats some in another way (a least
/// number of two, a slice that ends somewhere): the examples alone would not show that.
class Ranges {
 public:
  Ranges(const SessionModel& model, std::vector<Bindings> sizes, std::vector<Graph> graphs, Weights weights)
      : model_(model),
        examples_(sizes.back()),
        sizes_(std::move(sizes)),
        graphs_(std::move(graphs)),
        weights_(std::move(weights)),
        bytes_(constant_bytes(graphs_[0])),
        examples_grown_(grown_bytes(graphs_)) {
    sizes_.emplace_back();
    graphs_.emplace_back();
  }

  bool same(const Bindings& sizes) {
    sizes_.back() = sizes;
    try {
      graphs_.back() = with_known_constants(whole_graph(model_, sizes), weights_);
      return learn_graphs(sizes_, graphs_, weights_).has_value();
    } catch (const InternalError&) {
      throw;
    } catch (const Error&) {
      return false;  // it cannot be had for so many
    }
  }

  /// Of one dimension, where the others are as large as in the examples. For few it may be another graph that
  /// says the same (nothing is repeated for one); `says_the_same` tells.
  Known of(const std::string& name, const std::function<bool(const Bindings&)>& says_the_same) {
    const int64_t largest = examples_.at(name);
    Known known{largest, largest};
    for (const Bindings& each : sizes_)
      if (!each.empty()) known.least = std::min(known.least, each.at(name));
    Bindings at = examples_;
    for (const int64_t size : kSmaller) {
      at[name] = size;
      if (size >= known.least) continue;
      if (!same(at) && !says_the_same(at)) break;
      known.least = size;
    }
    const auto reaches = [&](int64_t size) {
      if (!holds(at, name, size)) return false;
      known.most = size;
      known.grows = known.grows || grown_ > examples_grown_;
      return true;
    };
    for (int64_t size : kLarger) {
      if (size <= largest) continue;
      if (reaches(size)) {
        // What is repeated (a bias for each row) is written out here, and would fill the memory soon.
        if (constant_bytes(graphs_.back()) > bytes_ + kMuch) break;
        continue;
      }
      // Where it ends: a table in some place, what is kept at about so much.
      while (size - known.most > (too_much_ ? known.most / 8 : 1)) {
        const int64_t middle = known.most + (size - known.most) / 2;
        if (!reaches(middle)) size = middle;
      }
      break;
    }
    return known;
  }

  /// Where several are large at once: a limit may be one of their product.
  void limit_together(std::map<std::string, Known>& all) {
    Bindings at = examples_;
    for (bool larger = true; larger;) {
      larger = false;
      for (auto& [name, known] : all) {
        const int64_t before = at.at(name);
        if (before >= known.most) continue;
        if (!holds(at, name, std::min(2 * before, known.most))) {
          known.most = at[name] = before;
        } else if (constant_bytes(graphs_.back()) > bytes_ + kMuch) {
          return;
        } else {
          larger = true;
        }
      }
    }
  }

 private:
  bool holds(Bindings& at, const std::string& name, int64_t size) {
    at[name] = size;
    too_much_ = false;
    if (!same(at)) return false;
    grown_ = grown_bytes(graphs_);
    too_much_ = grown_ > examples_grown_ && grown_ > kMuch;  // of which passes leave a part
    return !too_much_;
  }

  const SessionModel& model_;
  const Bindings examples_;  // the largest
  std::vector<Bindings> sizes_;
  std::vector<Graph> graphs_;
  Weights weights_;
  const int64_t bytes_, examples_grown_;
  // Of the last sizes: what of constants grows, and whether that is why they do not hold.
  int64_t grown_ = 0;
  bool too_much_ = false;
};

/// A whole table may be what a node is given.
std::string begun(const std::string& text) {
  constexpr size_t much = 100;
  return text.size() <= much ? text : text.substr(0, text.rfind(' ', much)) + " …";
}

/// Where the model decides something by its sizes, which examples of them show in part at best; else empty.
std::string decided_by_sizes(const SessionModel& model, const std::vector<Bindings>& examples) {
  if (!model.decisions) return {};
  const std::vector<std::string> first = model.decisions(examples[0]);
  for (const Bindings& sizes : examples) {
    const std::vector<std::string> others = model.decisions(sizes);
    for (size_t i = 0; i < std::max(first.size(), others.size()); ++i)
      if (i >= first.size() || i >= others.size() || first[i] != others[i])
        return "its graph is not the same for all: it depends on " +
               begun(i < first.size() ? first[i] : others[i]);
  }
  return {};
}

/// What graphs for these sizes do not have in common: that some layer is another one, or what it gives.
std::string why_different(const std::vector<Bindings>& sizes, const std::vector<Graph>& graphs) {
  std::string why = "its graph is not the same for all";
  int nodes = graphs[0].size();
  for (const Graph& graph : graphs) nodes = std::min(nodes, graph.size());
  for (int i = 0; i < nodes; ++i) {
    const Node& first = graphs[0].node(i);
    bool same = true;
    std::vector<std::pair<Bindings, std::string>> types;
    for (size_t g = 0; g < graphs.size(); ++g) {
      same = same && graphs[g].node(i).op == first.op;
      types.emplace_back(sizes[g], graphs[g].type({i, 0}).str());
    }
    if (same && learn_text(types)) continue;
    if (first.origin.layer.empty()) break;
    return why + (same
                      ? fmt::format(": how large '{}' is, follows from them by more than a product and a sum",
                                    first.origin.layer.str())
                      : fmt::format(": '{}' is computed in another way for some", first.origin.layer.str()));
  }
  return why;
}

/// Learns it from these sizes. InputError where the model cannot be had for them.
OpenGraph learn_from(const Examples& examples, const SessionModel& model, CompileOptions compile,
                     const std::set<std::string>& names, Weights& weights) {
  OpenGraph open;
  Weights all = weights;
  std::vector<Bindings> sizes;
  std::vector<Graph> plain, ready;
  for (const auto& example : examples) {
    Bindings& own = sizes.emplace_back();
    for (const std::string& name : names) {
      const size_t place = own.size();
      own[name] = example[place % 4];
    }
  }
  open.why_not = decided_by_sizes(model, sizes);
  if (!open.why_not.empty()) return open;
  const auto made_ready = [&](const Graph& graph, const Bindings& own) {
    compile.bindings = own;
    return with_known_constants(make_ready_untimed(graph, compile), weights);
  };
  for (const Bindings& own : sizes) {
    plain.push_back(with_known_constants(whole_graph(model, own), weights));
    ready.push_back(made_ready(plain.back(), own));
  }
  std::optional<std::string> learnt = learn_graphs(sizes, ready, all);
  Ranges ranges(model, sizes, plain, all);
  Bindings equal;
  for (const std::string& name : names) equal[name] = examples[1][0];
  if (!learnt || (names.size() > 1 && !ranges.same(equal))) {
    open.why_not = learnt ? "its graph is another one where sizes are equal" : why_different(sizes, plain);
    return open;
  }
  std::map<std::string, Known> known;
  for (const std::string& name : names)
    known[name] = ranges.of(
        name, [&](const Bindings& some) { return says_the_same(model, *learnt, all, compile, some); });
  if (names.size() > 1) ranges.limit_together(known);
  // What grows is kept up to the largest size: no more than the model has anyway.
  const int64_t much = std::clamp(constant_bytes(plain[0]), int64_t{1} << 22, kMuch);
  const Bindings examples_most = sizes.back();
  while (std::any_of(known.begin(), known.end(), [](const auto& each) { return each.second.grows; })) {
    Bindings largest = examples_most;
    for (const auto& [name, range] : known)
      if (range.grows) largest[name] = range.most;
    sizes.resize(4);
    ready.resize(4);
    sizes.push_back(largest);
    ready.push_back(made_ready(whole_graph(model, largest), largest));
    if (grown_bytes(ready) <= much || largest == examples_most) break;
    for (auto& [name, range] : known)
      if (range.grows) range.most -= (range.most - examples_most.at(name) + 7) / 8;
  }
  all = weights;
  learnt = learn_graphs(sizes, ready, all);
  if (!learnt) {
    open.why_not = why_different(sizes, ready);
    return open;
  }
  for (const auto& [name, range] : known) open.sizes[name] = {range.least, range.most};
  weights = std::move(all);
  open.text = *learnt;
  return open;
}

}  // namespace

OpenGraph learn_graph(const SessionModel& model, const CompileOptions& compile, Weights& weights) {
  const std::set<std::string> names = named_dimensions(model.inputs);
  OpenGraph open;
  if (names.empty()) return open;
  for (const Examples& examples : {std::cref(kExamples), std::cref(kFewer)}) {
    try {
      return learn_from(examples, model, compile, names, weights);
    } catch (const InternalError&) {
      throw;
    } catch (const Error& e) {
      if (open.why_not.empty()) open.why_not = e.what();
    }
  }
  return open;
}

}  // namespace millrace::mill
