// Ctrl-C.
#pragma once

namespace millrace::cli {

/// From now on the first SIGINT, SIGTERM or SIGHUP (the terminal was closed) only sets a flag, so that a long
/// verb can end in order; a second SIGINT or SIGTERM exits at once (code 130).
void catch_interrupts();
bool interrupted();

}  // namespace millrace::cli
