#include <fmt/core.h>

#include "base/file.h"
#include "cli/progress.h"
#include "cli/verbs.h"
#include "train/session.h"

namespace millrace::cli {

Action declare_export(Command& command) {
  struct Arguments {
    std::string model, out;
  };
  auto a = std::make_shared<Arguments>();
  command.positional("MODEL", a->model, "a run folder")
      .positional("FILE", a->out, "the .onnx file to write")
      .footer(
          "  millrace export runs/letters-1 letters.onnx\n\n"
          "The model takes `pictures`, u8 [batch, channels, height, width] as they are decoded, and gives "
          "`logits`:\n"
          "scaling and normalising are part of it. Class names stand in its metadata under `classes`, one a "
          "line.\n");
  return [a] {
    std::vector<std::string> warnings;
    const train::Session session = train::load_session(a->model, warnings);
    for (const std::string& line : warnings) fmt::print(stderr, "{}\n", line);
    const std::string bytes = train::export_session(session);
    write_file(a->out, bytes);
    fmt::print("{}: {:.1f} MB, opset 17\n", a->out, static_cast<double>(bytes.size()) / 1e6);
    return 0;
  };
}

}  // namespace millrace::cli
