// scatter_rows: rows written into a table, in place where the plan allows it.
#pragma once

#include <memory>

#include "target/provider.h"

namespace millrace::cpu {

std::unique_ptr<Provider> make_scatter_rows_provider();

}  // namespace millrace::cpu
