// Summaries of TensorBoard's plugins beside scalars, as fields of tensorflow.Summary.Value
// (tensorboard/plugins/*/summary_v2.py).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/wire.h"
#include "track/exhibit.h"

namespace millrace::track {

/// The Summary of an exhibit: field 5 of an Event.
WireWriter exhibit_summary(const Exhibit& exhibit);

/// The three summaries that make a run a line of TensorBoard's table of hyperparameters: which there are (and
/// which curves are its results), the run's values, and that it has come to its end.
WireWriter hparams_experiment(std::span<const std::pair<std::string, std::string>> params,
                              std::span<const std::string> curves);
/// Values are TOML: numbers and truth values are written as such, all else as text.
WireWriter hparams_begin(std::span<const std::pair<std::string, std::string>> params, double time);
WireWriter hparams_end(double time);

}  // namespace millrace::track
