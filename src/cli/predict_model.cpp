// Prediction by a model that has no recipe.
#include <algorithm>
#include <filesystem>
#include <fmt/core.h>

#include <millrace/session.h>

#include "base/file.h"
#include "base/format.h"
#include "base/utf8.h"
#include "base/words.h"
#include "cli/predict.h"
#include "task/predict_model_file.h"

namespace millrace::cli {
namespace {

/// A line, or an object, for each row.
int print_all(const PredictArguments& a, const task::ModelRowOptions& options, const Session& session,
              const task::ModelSamples& samples) {
  const task::ModelRows rows(session.outputs(), options);
  int failures = 0;
  const auto failed = [&](const std::string& name, const std::string& why) {
    fmt::print(stderr, "error: {}\n",
               printable(why.starts_with(name) ? why : fmt::format("{}: {}", name, why)));
    ++failures;
  };
  samples.each(task::ModelSamples::files_of(a.samples), 0,
               {[&](const task::ModelSample& sample) {
                  std::vector<Array> results;
                  try {
                    results = session.run(sample.inputs);
                  } catch (const Error& e) {
                    return failed(sample.name, e.what());
                  }
                  const int64_t count = rows.rows_of(results);
                  for (int64_t row = 0; row < std::max<int64_t>(count, 1); ++row) {
                    const std::string name = task::ModelRows::name_of(sample.name, row, count);
                    if (a.json)
                      fmt::print("{}\n", rows.json(name, results, row, count));
                    else
                      fmt::print("{}: {}\n", printable(name), printable(rows.text(results, row, count)));
                  }
                },
                failed});
  return failures ? 1 : 0;
}

}  // namespace

int predict_model(const PredictArguments& a) {
  task::PredictModelFileOptions file{a.target, {a.top, a.threshold, a.all, {}}};
  if (!a.labels.empty()) file.rows.labels = lines_in(read_text(a.labels));
  const Session session = Session::load(a.model, {.precision = a.precision});
  for (const std::string& line : session.notes()) fmt::print(stderr, "{}\n", line);
  const task::ModelSamples samples(session.inputs(), a.pictures);
  if (const std::string line = samples.preparation(); !line.empty()) fmt::print(stderr, "{}\n", line);
  if (file.out.empty()) return print_all(a, file.rows, session, samples);
  file.identity = fmt::format("{} of {} bytes, {}, {} {}", a.model, std::filesystem::file_size(a.model),
                              a.precision, a.pictures.resize, a.pictures.normalise);
  return show_prediction(file.out, "files", [&](const task::PredictWatch& watch) {
    file.watch = watch;
    return task::predict_model_file(session, samples, a.samples, file);
  });
}

}  // namespace millrace::cli
