#include <filesystem>
#include <fmt/core.h>
#include <unistd.h>

#include <millrace/run.h>

#include "base/file.h"
#include "base/format.h"
#include "base/is_run.h"
#include "base/number_from.h"
#include "base/words.h"
#include "cli/progress.h"
#include "cli/verbs.h"
#include "onnx/onnx_file.h"

namespace millrace::cli {

namespace {

namespace fs = std::filesystem;

/// Of the file of a run, in its folder or a folder there: that run; empty of any other file.
fs::path run_of(const fs::path& file) {
  std::error_code ignored;
  fs::path folder = fs::canonical(file, ignored).parent_path();
  for (int depth = 0; depth < 2; ++depth, folder = folder.parent_path())
    if (is_run(folder)) return folder;
  return {};
}

/// A model may take the place of a model; what else is there is not lost to a slip of the finger.
void require_replaceable(const fs::path& out, bool force) {
  std::error_code ignored;
  if (!fs::is_regular_file(out, ignored) || out == standard_output) return;
  const fs::path name = fs::canonical(out, ignored).filename();
  if (const fs::path run = run_of(out); !run.empty() && name.extension() != ".onnx")
    fail<InputError>("{}: is a file of the run {}, which would be lost; write to another place", out.string(),
                     run.string());
  if (!force && fs::file_size(out, ignored) > 0 && !is_onnx_file(out))
    fail<InputError>(
        "{}: is there already and is no ONNX model; --force replaces it, or write to another place",
        out.string());
}

/// Of "480x640"; 0 and 0 of nothing.
std::pair<int, int> decoded_sizes(const std::string& text) {
  if (text.empty()) return {0, 0};
  const std::vector<std::string> sides = split(text, 'x');
  const int height = number_from<int>(sides.front()).value_or(0),
            width = number_from<int>(sides.back()).value_or(0);
  if (sides.size() == 2 && height > 0 && width > 0 && height <= 65535 && width <= 65535)
    return {height, width};
  fail<InputError>("--pictures {}: wanted is HEIGHTxWIDTH, e.g. 480x640", text);
}

Action declare_export(Command& command) {
  struct Arguments {
    std::string model, out, pictures, checkpoint;
    int64_t opset = 0;
    bool force = false;
  };
  auto a = std::make_shared<Arguments>();
  command.positional("MODEL", a->model, "a run folder")
      .positional("FILE", a->out,
                  "the .onnx file to write; - for standard output; or a .safetensors file of the weights")
      .option(
          "--pictures", a->pictures,
          "HEIGHTxWIDTH of decoded pictures that the model is to resize and crop itself, as evaluation does")
      .option("--opset", a->opset,
              "the version of ONNX's operators, from 13 to 25, for a runtime that reads no newer one; 17 "
              "where none is "
              "named and the model needs no newer one")
      .option("--checkpoint", a->checkpoint, checkpoint_doc)
      .flag("--force", a->force, "replace a file that is there and is no ONNX model, unless it is of a run")
      .footer(
          "  millrace export runs/letters-1 letters.onnx\n"
          "  millrace export runs/letters-1 letters.onnx --opset 13\n"
          "  millrace export runs/letters-1 letters.safetensors\n\n"
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
    if (a->out == "-") a->out = standard_output;
    const bool piped = a->out == standard_output;
    if (piped && ::isatty(STDOUT_FILENO))
      fail<InputError>("a model is nothing for a terminal: name a file, or redirect standard output");
    require_replaceable(a->out, a->force);
    Run run =
        Run::open(a->model, {.message = [](const std::string& line) { fmt::print(stderr, "{}\n", line); }},
                  {}, a->checkpoint);
    const auto [height, width] = decoded_sizes(a->pictures);
    if (a->opset < 0 || a->opset > 1000)
      fail<InputError>("--opset {}: models are written in opsets 13 to 25", a->opset);
    if (fs::path(a->out).extension() == ".safetensors") {
      if (height > 0) fail<InputError>("--pictures is of an .onnx file: weights alone resize nothing");
      if (a->opset > 0) fail<InputError>("--opset is of an .onnx file: weights alone have no operators");
      run.export_weights(a->out);
    } else {
      for (const std::string& line : run.export_onnx(a->out, height, width, static_cast<int>(a->opset)))
        fmt::print(piped ? stderr : stdout, "{}\n", line);
    }
    std::error_code none;  // a device, or a pipe, which may be where this line would go
    const auto bytes = fs::file_size(a->out, none);
    if (!none && !piped) fmt::print("{}: {:.1f} MB\n", a->out, static_cast<double>(bytes) / 1e6);
    return 0;
  };
}

}  // namespace

MILLRACE_VERB(export){"export", "write a trained model as ONNX, or its weights", declare_export, 90};

}  // namespace millrace::cli
