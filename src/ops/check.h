// Refuses incomplete operators at start-up.
#pragma once

namespace millrace {

/// Checks the library's operators on the first call; throws InternalError with everything that is missing.
void check_operators();

}  // namespace millrace
