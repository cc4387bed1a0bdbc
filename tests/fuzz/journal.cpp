// Any text as a run's journal and as a request of millrace ctl: changes that a recipe takes, or a refusal.
#include "fuzz/fuzz.h"
#include "train/control.h"

using namespace millrace;
using namespace millrace::train;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text = fuzz::text(data, size);
  fuzz::refuse_or_take([&] {
    for (const Applied& entry : parse_journal(text, "fuzz"))
      fuzz::refuse_or_take([&] {
        task::Recipe recipe;
        recipe.data.sources = {{"ads", "a.tar"}, {"news", "b.tar"}};
        apply_changes(recipe, {&entry.change, 1});
        task::check_recipe(recipe, "fuzz");
      });
  });
  fuzz::refuse_or_take([&] {
    task::Recipe recipe;
    apply_changes(recipe, parse_request(text));
  });
  return 0;
}
