// Runs ONNX models for tests/onnx/backend.py: of each two lines MODEL and FOLDER of its standard input the
// model on FOLDER/input_K.pb, results into FOLDER/output_K.pb. Answers with a line "ok" or "error: …".
#include <algorithm>
#include <iostream>
#include <string>

#include <millrace/error.h>

#include "base/file.h"
#include "support/onnx_cases.h"

using namespace millrace;
namespace fs = std::filesystem;

namespace {

std::string answer(const fs::path& path, const fs::path& folder) {
  try {
    const onnx::Model model = onnx::read_model(path);
    const onnx::Ran ran = onnx::run_model(model, test::onnx_inputs(model, folder));
    for (size_t i = 0; i < ran.outputs.size(); ++i)
      write_file(folder / ("output_" + std::to_string(i) + ".pb"),
                 onnx::written_value(ran.outputs[i], model.graph.outputs[i]));
    return "ok";
  } catch (const std::exception& e) {
    std::string why = e.what();
    std::replace(why.begin(), why.end(), '\n', ' ');
    return "error: " + why;
  }
}

}  // namespace

int main() {
  for (std::string model, folder; std::getline(std::cin, model) && std::getline(std::cin, folder);)
    std::cout << answer(model, folder) << std::endl;
}
