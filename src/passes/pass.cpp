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

Graph run_pass(const Pass& pass, Graph graph, const PassContext& context) {
  PassContext inside = context;  // of loops' bodies
  inside.copies = nullptr;
  inside.in_loop = true;
  graph = with_bodies(std::move(graph), [&](const Graph& body) { return pass.run(body, inside); });
  return pass.run(graph, context);
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
    graph.verify();
    if (report) report->push_back({std::string(pass->name), seconds_since(begin), graph.size()});
    if (dump) fmt::print(stderr, "after {}:\n{}\n", pass->name, graph.str());
  }
  return graph;
}

}  // namespace millrace
