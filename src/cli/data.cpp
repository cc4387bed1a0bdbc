// millrace data VERB: looking at data; each verb is a file here.
#include "cli/verbs.h"

namespace millrace::cli {

Action declare_data(Command& command) {
  command.footer(
      "  millrace data head train.rec\n"
      "  millrace data stat train.tar test.tar\n"
      "  millrace data convert train.rec train.beton --format beton\n");
  return command.choose({
      {"stat", "count, measure and compare: classes, sizes, what is bad, what is there twice",
       declare_data_stat},
      {"head", "print the first samples of a source", declare_data_head},
      {"convert", "copy a source into another format", declare_data_convert},
  });
}

}  // namespace millrace::cli
