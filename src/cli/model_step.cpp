#include "cli/model_step.h"

#include <cmath>
#include <filesystem>

#include <millrace/random.h>

#include "base/format.h"
#include "base/is_run.h"
#include "cli/model_sizes.h"
#include "cli/zoo.h"
#include "runtime/ready.h"
#include "session/format.h"
#include "session/summary.h"

namespace millrace::cli {
namespace {

/// Floats around 0; integers 0 and 1, which any table of embeddings has.
void fill_made_up(Array& array, uint64_t stream) {
  RandomStream random(1, stream);
  for (int64_t i = 0; i < array.count(); ++i) {
    if (array.dtype().is_float())
      array.set(i, 2 * static_cast<double>(random.uniform()) - 1);
    else
      array.set_int(i, random.below(2));
  }
}

}  // namespace

bool is_model(const std::string& path, bool infer) {
  if (is_run(path)) return infer;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  for (const ModelFormat* format : model_formats().all())
    if (format->recognise(path)) return true;
  return false;
}

ModelStep::ModelStep(const std::string& path, const std::string& sizes, const std::string& precision) {
  const SessionModel model = load_session_model(path);
  sizes_ = example_sizes(model.inputs, parse_sizes(sizes, model.inputs));
  CompileOptions options = model.compile;
  if (!precision.empty()) options.precision = precision;
  options.bindings = sizes_;
  for (size_t i = 0; i < model.weights.size(); ++i)
    options.inputs.emplace(static_cast<int>(model.inputs.size() + i), model.weights[i]);
  precision_ = options.precision;
  const Graph graph = model.graph(sizes_);
  program_.emplace(model.compile.ready ? compile_ready(graph, options) : Executable::compile(graph, options),
                   options.inputs);
  for (size_t i = 0; i < model.inputs.size(); ++i) fill_made_up(program_->input(static_cast<int>(i)), i + 1);
  if (!model.inputs.empty())
    if (const Shape& first = program_->input(0).shape(); first.rank() > 0) items_ = first[0].size();
}

std::string ModelStep::detail() const {
  return fmt::format("inference, {}{}", sizes_.empty() ? "" : sizes_text(sizes_) + ", ",
                     precision_text(precision_, *program_));
}

}  // namespace millrace::cli
