#include <charconv>
#include <fmt/core.h>

#include "base/file.h"
#include "base/format.h"
#include "cli/progress.h"
#include "cli/verbs.h"
#include "train/session.h"

namespace millrace::cli {

namespace {

/// Of "480x640"; 0 and 0 of nothing.
std::pair<int, int> sizes(const std::string& text) {
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

}  // namespace

Action declare_export(Command& command) {
  struct Arguments {
    std::string model, out, pictures;
  };
  auto a = std::make_shared<Arguments>();
  command.positional("MODEL", a->model, "a run folder")
      .positional("FILE", a->out, "the .onnx file to write")
      .option(
          "--pictures", a->pictures,
          "HEIGHTxWIDTH of decoded pictures that the model is to resize and crop itself, as data.resize and "
          "data.crop say")
      .footer(
          "  millrace export runs/letters-1 letters.onnx\n\n"
          "The model takes `pictures`, u8 [batch, channels, height, width] as they are decoded, and gives "
          "`logits`:\n"
          "scaling and normalising are part of it. Class names stand in its metadata under `classes`, one a "
          "line.\n"
          "A model of sounds takes `sounds`, f32 [batch, samples], one of a table `numbers`, f64 [batch, "
          "columns] as they "
          "stand in\n"
          "it, and `ids` of its categories, one of texts `tokens`: docs/predict.md.\n");
  return [a] {
    std::vector<std::string> warnings;
    const train::Session session = train::load_session(a->model, warnings);
    for (const std::string& line : warnings) fmt::print(stderr, "{}\n", line);
    const auto [height, width] = sizes(a->pictures);
    const std::string bytes = train::export_session(session, height, width);
    write_file(a->out, bytes);
    fmt::print("{}: {:.1f} MB\n", a->out, static_cast<double>(bytes.size()) / 1e6);
    return 0;
  };
}

}  // namespace millrace::cli
