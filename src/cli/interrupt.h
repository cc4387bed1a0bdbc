// Ctrl-C.
#pragma once

namespace millrace::cli {

/// From now on the first SIGINT, SIGTERM, SIGHUP (the terminal was closed) or SIGPIPE (who read the output is
/// gone, as in `millrace train … | head`) only sets a flag, so that a long verb can end in order; a second
/// SIGINT or SIGTERM exits at once (code 130).
void catch_interrupts();
bool interrupted();

}  // namespace millrace::cli
