// ONNX's own test cases (the Python package onnx, backend/test/data), where MILLRACE_ONNX_CASES names their
// folder: those that tests/onnx/import/conformance.txt lists give what they should. The list only grows.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include <millrace/error.h>
#include <millrace/program.h>

#include "backend/ref/evaluate.h"
#include "base/file.h"
#include "onnx/import/import.h"

using namespace millrace;
namespace fs = std::filesystem;

namespace {

Array array_in(const fs::path& path) {
  const std::vector<uint8_t> bytes = read_file(path);
  return onnx::array_of(
      onnx::parse_tensor({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path.string()), {});
}

/// The suite's own measure, |a − b| ≤ 1e-7 + 1e-3·|b|, with room for sums in another order and 16-bit floats.
bool alike(const Array& is, const Array& should) {
  if (is.type() != should.type()) return false;
  const double relative = should.dtype().bits == 16 ? 1e-2 : 1e-3;
  double largest = 0;
  for (int64_t i = 0; i < should.count(); ++i)
    if (std::isfinite(should.at(i))) largest = std::max(largest, std::abs(should.at(i)));
  const double absolute = should.dtype().is_float() ? 1e-7 + 1e-6 * largest : 1e-7;
  for (int64_t i = 0; i < is.count(); ++i) {
    const double a = is.at(i), b = should.at(i);
    if (std::isnan(a) && std::isnan(b)) continue;
    if (a == b) continue;
    if (!(std::abs(a - b) <= absolute + relative * std::abs(b))) return false;
  }
  return true;
}

/// Empty when the case passes, else why not.
std::string outcome(const fs::path& folder, bool on_cpu) {
  try {
    const onnx::Model model = onnx::read_model(folder / "model.onnx");
    std::map<std::string, Array> inputs;
    int at = 0;
    for (const onnx::ValueInfo& input : model.graph.inputs) {
      const fs::path file = folder / "test_data_set_0" / ("input_" + std::to_string(at++) + ".pb");
      if (!fs::exists(file)) continue;
      inputs[input.name] = array_in(file);
    }
    onnx::ImportOptions options;
    for (const auto& [name, array] : inputs) options.inputs[name] = array.type();
    onnx::Imported imported;
    try {
      imported = onnx::import_model(model, options);
    } catch (const InputError&) {
      // Sizes may depend on inputs of whole numbers, which are told then.
      options.inputs.clear();
      for (const auto& [name, array] : inputs)
        if (array.shape().rank() <= 1 && (!array.dtype().is_float() || array.count() == 1))
          options.known[name] = array;
        else
          options.inputs[name] = array.type();
      imported = onnx::import_model(model, options);
    }
    std::vector<Array> values;
    for (const std::string& name : imported.graph.input_names()) values.push_back(inputs.at(name));
    std::vector<Array> results;
    if (on_cpu) {
      Program program = Program::compile(imported.graph, {});
      for (size_t i = 0; i < values.size(); ++i) program.input(static_cast<int>(i)).assign(values[i]);
      program.run();
      for (size_t i = 0; i < imported.graph.outputs().size(); ++i)
        results.push_back(program.output(static_cast<int>(i)).clone());
    } else {
      results = ref::evaluate(imported.graph, values);
    }
    for (size_t i = 0; i < results.size(); ++i)
      if (!alike(results[i], array_in(folder / "test_data_set_0" / ("output_" + std::to_string(i) + ".pb"))))
        return "another result";
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}

}  // namespace

// MILLRACE_ONNX_TARGET=ref computes by the reference. MILLRACE_ONNX_REPORT=FOLDER writes there which cases
// pass, and why others do not.
TEST_CASE("ONNX's own cases give what they should, at least those that did before") {
  const char* cases = std::getenv("MILLRACE_ONNX_CASES");
  if (!cases) {
    MESSAGE("skipped: MILLRACE_ONNX_CASES names no folder of cases");
    return;
  }
  const char* target = std::getenv("MILLRACE_ONNX_TARGET");
  const bool on_cpu = !target || std::string(target) != "ref";
  std::set<std::string> expected, passed;
  std::ifstream list(MILLRACE_ONNX_EXPECTED);
  for (std::string name; std::getline(list, name);) expected.insert(name);
  REQUIRE(expected.size() > 1000);
  std::string failures;
  size_t all = 0;
  for (const char* kind : {"light", "node", "pytorch-converted", "pytorch-operator", "simple"})
    for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(cases) / kind)) {
      const std::string name = entry.path().filename().string();
      const bool report = std::getenv("MILLRACE_ONNX_REPORT") != nullptr;
      if (!fs::exists(entry.path() / "model.onnx") || (!report && !expected.contains(name))) continue;
      ++all;
      const std::string why = outcome(entry.path(), on_cpu);
      if (why.empty())
        passed.insert(name);
      else
        failures += name + ": " + why + "\n";
      if (expected.contains(name)) CHECK_MESSAGE(why.empty(), name << ": " << why);
    }
  CHECK(all >= expected.size());
  if (const char* folder = std::getenv("MILLRACE_ONNX_REPORT")) {
    std::string names;
    for (const std::string& name : passed) names += name + "\n";
    write_file(fs::path(folder) / "passed.txt", names);
    write_file(fs::path(folder) / "failed.txt", failures);
    MESSAGE(passed.size() << " of " << all << " cases pass");
  }
}
