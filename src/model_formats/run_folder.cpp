// A run folder: the model of its newest sound checkpoint.
#include <memory>
#include <utility>

#include "base/is_run.h"
#include "session/format.h"
#include "task/decode_model.h"
#include "task/session_model.h"
#include "train/load_model.h"

namespace millrace {
namespace {

SessionModel load_run_folder(const std::filesystem::path& path) {
  std::vector<std::string> notes;
  const auto task = std::make_shared<task::Task>(train::load_model(path, notes));
  SessionModel model = task::session_model(*task);
  // The graph needs the task for as long as new sizes may come.
  model.graph = [task, graph = std::move(model.graph)](const Bindings& sizes) { return graph(sizes); };
  model.notes = std::move(notes);
  return model;
}

DecodeModel decode_run_folder(const std::filesystem::path& path, const DecoderOptions& options) {
  std::vector<std::string> notes;
  const auto task = std::make_shared<task::Task>(train::load_model(path, notes));
  DecodeModel model = task::decode_model(*task, options.precision);
  // The graph of a step needs the task, too.
  model.graph = [task, graph = std::move(model.graph)](const DecodeShape& shape) { return graph(shape); };
  return model;
}

}  // namespace

MILLRACE_MODEL_FORMAT(run_folder){"run_folder", "a run folder",
                                  [](const std::filesystem::path& path) { return is_run(path); },
                                  load_run_folder, decode_run_folder};

}  // namespace millrace
