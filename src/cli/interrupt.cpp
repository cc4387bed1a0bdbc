#include "cli/interrupt.h"

#include <csignal>
#include <initializer_list>
#include <unistd.h>

namespace millrace::cli {
namespace {

volatile std::sig_atomic_t flag = 0;

void on_signal(int signal) {
  // A terminal that closes sends more than one SIGHUP: by itself, and by its shell. A reader that is gone is
  // met by each line.
  if (flag && signal != SIGHUP && signal != SIGPIPE) ::_exit(130);
  flag = 1;
}

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  // nohup has SIGHUP ignored, and that stays.
  for (const int signal : {SIGHUP, SIGPIPE}) {
    struct sigaction before {};
    if (sigaction(signal, nullptr, &before) == 0 && before.sa_handler != SIG_IGN)
      sigaction(signal, &action, nullptr);
  }
}

bool interrupted() { return flag != 0; }

}  // namespace millrace::cli
