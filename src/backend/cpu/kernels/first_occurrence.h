// first_occurrence by hashing.
#pragma once

#include <memory>

#include "target/provider.h"

namespace millrace::cpu {

std::unique_ptr<Provider> make_first_occurrence_provider();

}  // namespace millrace::cpu
