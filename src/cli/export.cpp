#include <charconv>
#include <filesystem>
#include <fmt/core.h>

#include <millrace/run.h>

#include "base/format.h"
#include "cli/progress.h"
#include "cli/verbs.h"

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
    std::string model, out, pictures, checkpoint;
  };
  auto a = std::make_shared<Arguments>();
  command.positional("MODEL", a->model, "a run folder")
      .positional("FILE", a->out, "the .onnx file to write")
      .option(
          "--pictures", a->pictures,
          "HEIGHTxWIDTH of decoded pictures that the model is to resize and crop itself, as evaluation does")
      .option("--checkpoint", a->checkpoint, checkpoint_doc)
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
    Run run =
        Run::open(a->model, {.message = [](const std::string& line) { fmt::print(stderr, "{}\n", line); }},
                  {}, a->checkpoint);
    const auto [height, width] = decoded_sizes(a->pictures);
    for (const std::string& line : run.export_onnx(a->out, height, width)) fmt::print("{}\n", line);
    std::error_code none;  // a device, or a pipe, which may be where this line would go
    const auto bytes = std::filesystem::file_size(a->out, none);
    if (!none) fmt::print("{}: {:.1f} MB\n", a->out, static_cast<double>(bytes) / 1e6);
    return 0;
  };
}

}  // namespace

MILLRACE_VERB(export){"export", "write a trained model as ONNX", declare_export, 90};

}  // namespace millrace::cli
