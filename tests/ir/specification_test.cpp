// docs/ir.md: its example is a graph, and it names every class, dtype, property and property value that there
// is.
#include <algorithm>
#include <doctest/doctest.h>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include <millrace/graph.h>
#include <millrace/operator.h>

#include "base/file.h"

using namespace millrace;

namespace {

std::string specification() { return read_text(MILLRACE_DOCS "/ir.md"); }

/// All that `pattern` finds: its first group.
std::set<std::string> all_found(const std::string& text, const char* pattern) {
  const std::regex wanted(pattern);
  std::set<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), wanted), end; at != end; ++at)
    found.insert((*at)[1].str());
  return found;
}

std::string value_name(Arithmetic value) {
  switch (value) {
    case Arithmetic::narrow:
      return "narrow";
    case Arithmetic::follows:
      return "follows";
    case Arithmetic::full:
      return "full";
  }
  return "?";
}
std::string value_name(ErrorGrowth value) {
  switch (value) {
    case ErrorGrowth::none:
      return "none";
    case ErrorGrowth::large:
      return "large";
    case ErrorGrowth::decisive:
      return "decisive";
  }
  return "?";
}
std::string value_name(Repeat value) {
  switch (value) {
    case Repeat::free:
      return "free";
    case Repeat::cheap:
      return "cheap";
    case Repeat::costly:
      return "costly";
    case Repeat::never:
      return "never";
  }
  return "?";
}
std::string value_name(Logits value) {
  switch (value) {
    case Logits::none:
      return "none";
    case Logits::row:
      return "row";
    case Logits::each:
      return "each";
  }
  return "?";
}

}  // namespace

TEST_CASE("the specification's example is a graph in its text form") {
  const std::string page = specification(), begin = "```\nmillrace graph 1\n";
  const size_t at = page.find(begin);
  REQUIRE(at != std::string::npos);
  const std::string text = page.substr(at + 4, page.find("```", at + 4) - at - 4);
  const Graph graph = Graph::parse(text);
  graph.verify();
  CHECK(graph.str() == text);
}

TEST_CASE("operators that the specification gives as examples of a class belong to it") {
  const std::string page = specification();
  const std::pair<const char*, OpClass> classes[] = {{"elementwise", OpClass::elementwise},
                                                     {"movement", OpClass::movement},
                                                     {"reduction", OpClass::reduction},
                                                     {"generator", OpClass::generator},
                                                     {"view", OpClass::view},
                                                     {"heavy", OpClass::heavy},
                                                     {"composite", OpClass::composite},
                                                     {"group", OpClass::group},
                                                     {"loop", OpClass::loop},
                                                     {"branch", OpClass::branch}};
  for (const auto& [name, op_class] : classes) {
    CAPTURE(name);
    const size_t row = page.find("\n| `" + std::string(name) + "` |");
    REQUIRE(row != std::string::npos);
    std::string line = page.substr(row + 1, page.find('\n', row + 1) - row - 1);
    line.resize(line.rfind('|'));
    std::string examples = line.substr(line.rfind('|') + 1);
    int found = 0;
    for (size_t from = examples.find('`'); from != std::string::npos; from = examples.find('`', from)) {
      const size_t end = examples.find('`', from + 1);
      const std::string op = examples.substr(from + 1, end - from - 1);
      CAPTURE(op);
      CHECK(get_operator(op).op_class == op_class);
      from = end + 1;
      ++found;
    }
    CHECK(found > 0);
  }
  for (const DType dtype : all_dtypes()) CHECK(page.find("`" + dtype.name() + "`") != std::string::npos);
}

TEST_CASE("the specification has all properties, with the values that operators declare") {
  const std::string page = specification(), head = "\n| Property | Values | Asked by |\n|---|---|---|\n";
  REQUIRE(page.find(head) != std::string::npos);
  const size_t begin = page.find(head) + head.size();
  std::istringstream table(page.substr(begin, page.find("\n\n", begin) - begin));
  std::map<std::string, std::set<std::string>> said;  // of each property the values
  for (std::string line; std::getline(table, line);) {
    const size_t end = line.find(" | ", 2);
    const size_t values = line.find(" | ", end + 3);
    const std::set<std::string> names = all_found(line.substr(0, end), "`(\\w+)`");
    for (const std::string& name : names)
      said[name] = all_found(line.substr(end + 3, values - end - 3), "`(\\w+)`");
    // Each file that asks for them does.
    for (const std::string& file : all_found(line.substr(values), "`([\\w/]+)`")) {
      CAPTURE(file);
      const std::string code = read_text(MILLRACE_DOCS "/../src/" + file + ".cpp");
      CHECK(std::any_of(names.begin(), names.end(), [&](const std::string& name) {
        return std::regex_search(code, std::regex("\\b" + name + "(_of)?\\b"));
      }));
    }
  }

  // Those that passes ask for stand together in the header, but for the two about windows.
  const std::string header = read_text(MILLRACE_DOCS "/../include/millrace/operator.h");
  const size_t from = header.find("// ---- What passes ask"), to = header.find("// ---- ONNX");
  REQUIRE(from < to);
  REQUIRE(to != std::string::npos);
  const std::string members =
      std::regex_replace(header.substr(from, to - from), std::regex("//[^\n]*|\\([^()]*\\)"), "");
  std::set<std::string> declared = all_found(members, "(\\w+)(?: = [^;,]*)?[;,]"), named;
  declared.insert({"window", "disjoint", "flops", "touches", "evaluate", "onnx", "onnx_rule", "onnx_opset"});
  for (const auto& [name, values] : said) named.insert(name);
  CHECK(named == declared);

  std::set<std::string> arithmetic, errors, repeat, logits;
  for (const Operator* op : all_operators()) {
    arithmetic.insert(value_name(arithmetic_of(*op)));
    errors.insert(value_name(op->errors));
    repeat.insert(value_name(op->repeat));
    logits.insert(value_name(op->logits));
  }
  CHECK(said["arithmetic"] == arithmetic);
  CHECK(said["errors"] == errors);
  CHECK(said["repeat"] == repeat);
  CHECK(said["logits"] == logits);
}
