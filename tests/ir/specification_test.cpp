// docs/ir.md: its example is a graph, and it names every class, dtype and property value that there is.
#include <algorithm>
#include <doctest/doctest.h>
#include <string>

#include <millrace/graph.h>
#include <millrace/operator.h>

#include "base/file.h"

using namespace millrace;

namespace {

std::string specification() { return read_text(MILLRACE_DOCS "/ir.md"); }

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
