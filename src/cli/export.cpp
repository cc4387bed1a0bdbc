#include <charconv>
#include <fmt/core.h>

#include "base/file.h"
#include "base/format.h"
#include "cli/progress.h"
#include "cli/verbs.h"
#include "task/model.h"
#include "train/load_model.h"

namespace millrace::cli {

namespace {

/// Of "480x640"; 0 and 0 of nothing.
std::pair<int, int> decoded_sizes(const std::string& text) {
  if (text.empty()) return {0, 0};
  int height = 0, width = 0;
  const char* const end = text.data() + text.size();
  const auto [x, first] = std::from_chars(text.data(), end, height);
  if (first == std::errc() && x != end && *x == 'x') {
    const auto [last, second] = std::from_chars(x + 1, end, width);
    if (second == std::errc() && last == end && height > 0 && width > 0 && height <= 65535 && width <= 65535)
      return {height, width};
  }
  fail<InputError>("--pictures {}: wanted is HEIGHTxWIDTH, e.g. 480x640", text);
}

Action declare_export(Command& command) {
  struct Arguments {
    std::string model, out, pictures;
  };
  auto a = std::make_shared<Arguments>();
  command.positional("MODEL", a->model, "a run folder")
      .positional("FILE", a->out, "the .onnx file to write")
      .option(
          "--pictures", a->pictures,
          "HEIGHTxWIDTH of decoded pictures that the model is to resize and crop itself, as evaluation does")
      .footer(
          "  millrace export runs/letters-1 letters.onnx\n\n"
          "The model takes samples as they are decoded, such as u8 pictures [batch, channels, height, "
          "width], "
          "f32 signals,\n"
          "f64 columns of numbers with NaN for missing ones: what was learnt about the data (means, "
          "vocabularies) is part of\n"
          "it. It gives the logits of each output, and behind them its predictions: probabilities, numbers "
          "in "
          "their unit.\n"
          "docs/predict.md lists the arrays and the metadata.\n");
  return [a] {
    std::vector<std::string> warnings;
    const task::Task task = train::load_model(a->model, warnings);
    for (const std::string& line : warnings) fmt::print(stderr, "{}\n", line);
    const auto [height, width] = decoded_sizes(a->pictures);
    std::vector<std::string> notes;
    const std::string bytes = task::export_model(task, notes, height, width);
    write_file(a->out, bytes);
    for (const std::string& line : notes) fmt::print("{}\n", line);
    fmt::print("{}: {:.1f} MB\n", a->out, static_cast<double>(bytes.size()) / 1e6);
    return 0;
  };
}

}  // namespace

MILLRACE_VERB(export){"export", "write a trained model as ONNX", declare_export, 90};

}  // namespace millrace::cli
