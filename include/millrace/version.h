// Which Millrace this is.
#pragma once

namespace millrace {

/// "0.1.0"
const char* version();

}  // namespace millrace
