// A recipe that is taken is written back as one that says the same.
#include "train/recipe.h"

#include <cstdlib>

#include "fuzz/fuzz.h"

using namespace millrace;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::refuse_or_take([&] {
    const train::Recipe recipe = train::parse_recipe(fuzz::text(data, size), "input.toml");
    const std::string written = train::recipe_toml(recipe);
    if (train::recipe_toml(train::parse_recipe(written, "written.toml")) != written) std::abort();
  });
  return 0;
}
