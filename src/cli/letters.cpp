#include "data/tools/letters.h"

#include <fmt/core.h>

#include "cli/outputs.h"
#include "cli/progress.h"
#include "cli/verbs.h"

namespace millrace::cli {

namespace {

Action declare_letters(Command& command) {
  struct Arguments {
    std::string out;
    data::LettersOptions options;
    int64_t seed = 1;
    std::string fonts = "/usr/share/fonts";
  };
  auto a = std::make_shared<Arguments>();
  command.positional("OUT", a->out, "folder to make")
      .option("--train", a->options.train, "pictures for training")
      .option("--test", a->options.test, "pictures for testing, from typefaces that training never sees")
      .option("--seed", a->seed, "the same seed gives the same bytes")
      .flag("--signs", a->options.signs, "with a table beside the pictures: for several inputs and outputs")
      .option("--fonts", a->fonts, "where Debian's fonts are")
      .footer(
          "Renders the letters A to J from Debian's typefaces: 32x32 grey JPEG files in OUT/train/A/ … "
          "OUT/test/J/. With --signs they are OUT/train/00000.jpg …, and OUT/train/labels.csv has for each "
          "from how far (in metres) and through which lens it is seen, which letter it is, and how large (in "
          "centimetres).\n\n"
          "  millrace letters data/letters\n"
          "  millrace train examples/letters.toml\n"
          "  millrace letters data/signs --signs\n"
          "  millrace train examples/signs.toml\n");
  return [a] {
    require_named(a->out, "OUT");
    Progress progress;
    a->options.seed = static_cast<uint64_t>(a->seed);
    a->options.fonts = a->fonts;
    a->options.progress = [&](int64_t done, int64_t total) { progress.count("", done, total, "pictures"); };
    data::render_letters(a->out, a->options);
    int held_out = 0;
    for (const data::Typeface& face : data::letter_typefaces()) held_out += face.held_out;
    progress.print(fmt::format(
        "{}: {} pictures for training from {} typefaces, {} for testing from {} others", a->out,
        thousands(a->options.train), data::letter_typefaces().size() - static_cast<size_t>(held_out),
        thousands(a->options.test), held_out));
    return 0;
  };
}

}  // namespace

MILLRACE_VERB(letters){"letters", "make a small data set: pictures of the letters A to J", declare_letters,
                       10};

}  // namespace millrace::cli
