// millrace data VERB: looking at data and converting it; each verb is a file here.
#include "cli/verbs.h"

namespace millrace::cli {

Action declare_data(Command& command) {
  command.footer(
      "  millrace data head train.rec\n"
      "  millrace data convert train.rec train.beton --format beton\n");
  return command.choose({
      {"head", "print the first samples of a source", declare_data_head},
      {"convert", "copy a source into another format", declare_data_convert},
  });
}

}  // namespace millrace::cli
