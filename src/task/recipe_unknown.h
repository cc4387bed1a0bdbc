// Names that no recipe has, and what was probably meant by them.
#pragma once

#include <string>

#include "task/recipe_items.h"

namespace millrace::task {

/// InputError for a table that is no section of a recipe, "[ouput]", "[input.photo]": which section is meant,
/// by its name or by what stands in it.
void refuse_unknown_sections(const Items& items);

/// InputError for a key that no section has, with the nearest.
[[noreturn]] void unknown_key(const std::string& name, const std::string& where);

}  // namespace millrace::task
