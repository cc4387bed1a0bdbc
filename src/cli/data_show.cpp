#include <algorithm>
#include <fmt/core.h>

#include "base/file.h"
#include "base/format.h"
#include "cli/verbs.h"
#include "data/codecs/pictures/picture.h"
#include "data/codecs/pictures/png.h"
#include "data/tools/contact_sheet.h"
#include "train/datasets.h"
#include "train/run_folder.h"

namespace millrace::cli {

Action declare_data_show(Command& command) {
  struct Arguments {
    std::string recipe, out = "batch.png";
    std::vector<std::string> changes;
    int64_t step = 1, count = 64, columns = 8;
  };
  auto a = std::make_shared<Arguments>();
  command.positional("RECIPE", a->recipe, "a recipe or a run folder")
      .positional("key=value", a->changes, "changes of the recipe", false)
      .option("-o,--out", a->out, "the PNG file to write (batch.png)")
      .option("--step", a->step, "the step whose batch is drawn")
      .option("-n,--count", a->count, "pictures, at most")
      .option("--columns", a->columns, "pictures in a row")
      .footer(
          "Draws pictures as the model gets them: resized, cropped, augmented, mixed. The classes are "
          "printed in the\n"
          "same rows.\n\n"
          "  millrace data show examples/letters.toml\n"
          "  millrace data show examples/letters.toml 'data.augment=[\"rotate 30\"]' --out rotated.png\n");
  return [a] {
    const train::Recipe recipe = train::recipe_of(a->recipe, a->changes);
    if (a->columns < 1 || a->columns > 1000 || a->count < 1)
      fail<InputError>("--columns takes 1 to 1000, --count 1 or more");
    const auto loader = train::loader_at_step(recipe, a->step);
    const data::Batch& batch = loader->next();
    const int64_t count = std::min(a->count, batch.valid);
    const data::Picture sheet =
        data::contact_sheet(batch, loader->extent(), count, static_cast<int>(a->columns));
    write_file(a->out, data::encode_png(sheet));
    for (int64_t i = 0; i < count; ++i) {
      const bool last = (i + 1) % a->columns == 0 || i + 1 == count;
      fmt::print("{}{}", loader->classes()[static_cast<size_t>(batch.labels[static_cast<size_t>(i)])],
                 last ? "\n" : "  ");
    }
    fmt::print("{}: {} pictures of step {}, {}x{}\n", a->out, count, a->step, sheet.width, sheet.height);
    return 0;
  };
}

}  // namespace millrace::cli
