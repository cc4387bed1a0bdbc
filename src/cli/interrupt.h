// Ctrl-C.
#pragma once

namespace millrace::cli {

/// From now on the first SIGINT or SIGTERM only sets a flag, so that a long verb can end in order; a second
/// one exits at once (code 130).
void catch_interrupts();
bool interrupted();

}  // namespace millrace::cli
