// Changes at test time that training never made.
#include <string>
#include <vector>

#include "base/format.h"
#include "check/changes.h"
#include "check/check.h"
#include "check/context.h"

namespace millrace::check {
namespace {

Finding run_test_augmentation(Context& context) {
  const task::Task* task = context.task();
  if (!task) return not_for("no recipe: a model of C++");
  Finding finding = not_for("evaluation looks at each sample in one way");
  for (const auto& input : task->inputs) {
    if (input->views() < 2) continue;
    const std::vector<std::string> training = said_by(*input, "augment"), test = said_by(*input, "tta");
    const std::string text = test.empty() ? "" : test[0];
    // Also "shift" looks at mirror images.
    const bool mirrors = any_has(test, {"flip", "shift"}),
               mirrored = any_has(training, {"flip", "randaugment", "trivialaugment"}),
               shifts = any_has(test, {"shift"}),
               shifted = any_has(training, {"crop", "shift", "affine", "randaugment", "trivialaugment"});
    const std::string classes = mirrored_classes(*task);
    if (mirrors && !classes.empty())
      finding =
          worse(finding, failed(fmt::format("tta = \"{}\" looks at mirror images, and those of {} may be of "
                                            "another class",
                                            text, classes),
                                "take tta = \"none\""));
    else if ((mirrors && !mirrored) || (shifts && !shifted))
      finding =
          worse(finding, warned(fmt::format("tta = \"{}\" looks at {} samples, which training never makes",
                                            text, mirrors && !mirrored ? "mirrored" : "shifted"),
                                fmt::format("train with what is tested with ({} in input.augment), or take "
                                            "tta = \"none\"",
                                            mirrors && !mirrored ? "\"flip\"" : "\"random-shift 1\"")));
    else
      finding =
          worse(finding, passed(fmt::format("tta = \"{}\": {} views, of kinds that training makes, too ({})",
                                            text, input->views(), fmt::join(training, ", "))));
  }
  return finding;
}

}  // namespace

MILLRACE_CHECK_KIND(test_augmentation){
    .name = "test-augmentation",
    .doc = "test-time augmentation that looks at samples in ways that training never made",
    .matters = "views that the model was not trained on make its mean worse, or right by chance",
    .place = 185,
    .quick = true,
    .run = run_test_augmentation,
};

}  // namespace millrace::check
