#pragma once

#include "data/formats/arrow/module.h"

namespace millrace::data {

/// Loads the module at the first call. IoError when it is not there.
const arrow_module::Module& load_arrow();

}  // namespace millrace::data
