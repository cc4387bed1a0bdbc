#include "cli/interrupt.h"

#include <csignal>
#include <unistd.h>

namespace millrace::cli {
namespace {

volatile std::sig_atomic_t flag = 0;

void on_signal(int) {
  if (flag) ::_exit(130);
  flag = 1;
}

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool interrupted() { return flag != 0; }

}  // namespace millrace::cli
