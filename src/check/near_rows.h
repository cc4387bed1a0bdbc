// Rows of a test set that are rows of training, changed a little.
#pragma once

#include "check/columns.h"

namespace millrace::check {

/// The columns that inputs take, by their names: files may have them in different orders.
std::vector<const Column*> columns_seen(const Columns& table);

/// Whether more of the test set's rows than of training's own have a row of training right beside them.
Finding judge_near(const Columns& training, const Columns& tests);

}  // namespace millrace::check
