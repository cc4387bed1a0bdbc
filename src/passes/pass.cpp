#include "passes/pass.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/contains.h"
#include "base/format.h"
#include "base/seconds_since.h"
#include "base/suggest.h"
#include "base/words.h"
#include "passes/loops.h"
#include "passes/rules/rule.h"

namespace millrace {

#include "generated/passes.inc"

namespace {

/// The pass names listed in an environment variable, each checked.
std::vector<std::string> passes_in(const char* variable) {
  const char* value = std::getenv(variable);
  std::vector<std::string> names = split_list(value ? value : "");
  std::vector<std::string> known = passes().names();
  for (const std::string& rule : rules().names()) known.push_back(rule);
  for (const std::string& name : names)
    if (!contains(known, name))
      fail<InputError>("{}: there is no pass or rule '{}'{}", variable, name,
                       did_you_mean_or_list(name, known));
  return names;
}

}  // namespace

Registry<Pass>& passes() {
  static Registry<Pass> all("pass", {MILLRACE_FOUND_PASSES});
  return all;
}

const Pass& register_pass(const Pass& pass) { return passes().add(pass, {{"run", pass.run}}); }

namespace {

/// What a pass must leave as it is; behind it may stand what belongs to copies that it keeps.
void require_same(const Pass& pass, const char* what, const Graph& before, const std::vector<Value>& values,
                  const Graph& after, const std::vector<Value>& given, bool keeps) {
  bool same = keeps ? given.size() >= values.size() : given.size() == values.size();
  for (size_t i = 0; same && i < values.size(); ++i) same = before.type(values[i]) == after.type(given[i]);
  if (!same)
    fail<InputError>(
        "the pass '{}' changes the {} of a graph, their number or types ({} of them were given, {} came "
        "back)",
        pass.name, what, values.size(), given.size());
}

Graph run_checked(const Pass& pass, const Graph& graph, const PassContext& context) {
  const size_t copies = context.copies ? context.copies->copies.size() : 0;
  Graph result = pass.run(graph, context);
  const bool keeps = context.copies && context.copies->copies.size() > copies;
  require_same(pass, "inputs", graph, graph.inputs(), result, result.inputs(), keeps);
  require_same(pass, "outputs", graph, graph.outputs(), result, result.outputs(), keeps);
  return result;
}

}  // namespace

Graph run_pass(const Pass& pass, Graph graph, const PassContext& context) {
  PassContext inside = context;  // of loops' bodies
  inside.copies = nullptr;
  inside.in_loop = true;
  graph = with_bodies(std::move(graph), [&](const Graph& body) { return run_checked(pass, body, inside); });
  return run_checked(pass, graph, context);
}

Graph run_passes(Graph graph, const PassContext& given, std::vector<PassInfo>* report) {
  const std::vector<std::string> dumped = passes_in("MILLRACE_DUMP");
  PassContext context = given;
  context.disabled = passes_in("MILLRACE_DISABLE");
  for (const Pass* pass : passes().all()) {
    if (contains(context.disabled, pass->name)) continue;
    const bool dump = contains(dumped, pass->name);
    if (dump) fmt::print(stderr, "before {}:\n{}\n", pass->name, graph.str());
    const auto begin = std::chrono::steady_clock::now();
    graph = run_pass(*pass, std::move(graph), context);
    if (report) report->push_back({std::string(pass->name), seconds_since(begin), graph.size()});
    if (dump) fmt::print(stderr, "after {}:\n{}\n", pass->name, graph.str());
  }
  // What passes build is checked node by node when it is added: this is for the whole.
  graph.verify();
  return graph;
}

}  // namespace millrace
