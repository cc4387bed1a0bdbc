// A recipe that is taken is written back as one that says the same; the same bytes as an override of a key.
#include "task/recipe.h"

#include <cstdlib>

#include "fuzz/fuzz.h"

using namespace millrace;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::refuse_or_take([&] {
    const task::Recipe recipe = task::parse_recipe(fuzz::text(data, size), "input.toml");
    const std::string written = task::recipe_toml(recipe);
    if (task::recipe_toml(task::parse_recipe(written, "written.toml")) != written) std::abort();
  });
  fuzz::refuse_or_take([&] {
    const std::string change(fuzz::text(data, size));
    (void)task::parse_recipe("", "input.toml", {&change, 1});
  });
  return 0;
}
