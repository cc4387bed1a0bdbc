// A program of somebody else's, with Millrace's public headers alone: builds a graph, compiles and runs it;
// then trains on letters, and with kinds of its own.
#include <exception>
#include <filesystem>
#include <iostream>
#include <string>

#include <millrace/error.h>
#include <millrace/graph.h>
#include <millrace/program.h>

int train_on_letters(const std::filesystem::path& data, const std::filesystem::path& out);  // letters.cpp

int train_with_own_kinds(const std::filesystem::path& out);  // extend.cpp

int compute() {
  millrace::Graph graph;
  const millrace::Value x = graph.input("x", {millrace::f32, {millrace::Dim::named("n")}});
  graph.set_outputs({graph.add("add", {x, graph.add("relu", {x})})}, {"y"});
  if (!(millrace::Graph::parse(graph.str()) == graph)) return 1;

  millrace::CompileOptions options;
  options.bindings["n"] = 3;
  millrace::Program program = millrace::Program::compile(graph, options);
  for (int i = 0; i < 3; ++i) program.input(0).as<float>()[i] = static_cast<float>(i - 1);
  program.run();
  for (const float y : program.output(0).as<float>()) std::cout << y << ' ';
  std::cout << '\n';

  try {
    graph.add("add", {x, graph.scalar(millrace::f64, 1)});
  } catch (const millrace::TypeError& error) {
    std::cout << "TypeError: " << error.what() << '\n';
    return 0;
  }
  return 1;
}

/// consumer compute | letters DATA OUT | extend OUT
int main(int count, char** arguments) try {
  const std::string what = count > 1 ? arguments[1] : "";
  if (what == "compute") return compute();
  if (what == "letters" && count == 4) return train_on_letters(arguments[2], arguments[3]);
  if (what == "extend" && count == 3) return train_with_own_kinds(arguments[2]);
  return 2;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
