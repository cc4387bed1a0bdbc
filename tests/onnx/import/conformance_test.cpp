// ONNX's own test cases (the Python package onnx, backend/test/data), where MILLRACE_ONNX_CASES names their
// folder: a sixteenth of those that tests/onnx/import/conformance.txt lists give what they should, with
// MILLRACE_ONNX_WHOLE=1 (as sanitizers have it) all. The list only grows. tests/e2e/test_onnx_backend.py has
// onnx's own runner judge the whole list.
#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "base/file.h"
#include "support/onnx_cases.h"

using namespace millrace;
namespace fs = std::filesystem;

namespace {

/// Whether a case is tried where not all are. What onnx's own runner cannot judge is (EXCUSED there).
bool in_sample(const std::string& name, size_t place) {
  return place % 16 == 0 || name.starts_with("test_dft_inverse") || name == "test_loop16_seq_none";
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
  const bool report = std::getenv("MILLRACE_ONNX_REPORT") != nullptr;
  if (!report && !std::getenv("MILLRACE_ONNX_WHOLE")) {
    size_t place = 0;
    std::erase_if(expected, [&](const std::string& name) { return !in_sample(name, place++); });
    CHECK(expected.size() > 100);
  }
  std::string failures;
  size_t all = 0, told = 0;
  for (const char* kind : {"light", "node", "pytorch-converted", "pytorch-operator", "simple"}) {
    REQUIRE_MESSAGE(fs::is_directory(fs::path(cases) / kind),
                    "MILLRACE_ONNX_CASES is to be the folder onnx/backend/test/data, which has " << kind);
    for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(cases) / kind)) {
      const std::string name = entry.path().filename().string();
      if (!fs::exists(entry.path() / "model.onnx") || (!report && !expected.contains(name))) continue;
      ++all;
      const test::OnnxCase result = test::run_onnx_case(entry.path(), !on_cpu);
      const std::string& why = result.why;
      told += result.known.empty() ? 0 : 1;
      if (why.empty())
        passed.insert(name);
      else
        failures += name + ": " + why + "\n";
      if (expected.contains(name)) CHECK_MESSAGE(why.empty(), name << ": " << why);
    }
  }
  CHECK(all >= expected.size());
  if (const char* folder = std::getenv("MILLRACE_ONNX_REPORT")) {
    std::string names;
    for (const std::string& name : passed) names += name + "\n";
    write_file(fs::path(folder) / "passed.txt", names);
    write_file(fs::path(folder) / "failed.txt", failures);
    MESSAGE(passed.size() << " of " << all << " cases pass; " << told << " are told inputs");
  }
}
