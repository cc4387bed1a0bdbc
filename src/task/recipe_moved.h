// Keys that recipes had before, and where they went.
#pragma once

#include "task/recipe_items.h"

namespace millrace::task {

/// InputError, with the place, for the first of them: "data.augment is now input.augment".
void refuse_moved_keys(const Items& items);

}  // namespace millrace::task
