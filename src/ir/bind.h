// The named dimensions of types, found in arrays.
#pragma once

#include <string>

#include <millrace/array.h>
#include <millrace/type.h>

namespace millrace {

/// Adds the sizes of the named dimensions that make `wanted` the type of `array`. TypeError when nothing
/// does, or sizes that are bound already are others; `name`: of the input, for messages.
void bind_dimensions(const std::string& name, const Type& wanted, const Array& array, Bindings& bindings);

}  // namespace millrace
