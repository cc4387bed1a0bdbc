// millrace data VERB: looking at data and converting it; each verb is a file here.
#include "cli/verbs.h"

namespace millrace::cli {

Action declare_data(Command& command) {
  command.footer(
      "  millrace data head train.rec\n"
      "  millrace data stat train.tar test.tar\n"
      "  millrace data convert train.rec train.beton --format beton\n"
      "  millrace data index train.tar\n"
      "  millrace data query train.tar 'label in (3, 5) and width > 200'\n");
  return command.choose({
      {"stat", "count, measure and compare: classes, sizes, what is bad, what is there twice",
       declare_data_stat},
      {"head", "print the first samples of a source", declare_data_head},
      {"tokens", "cut texts into tokens, count and measure them", declare_data_tokens},
      {"show", "draw a batch as training sees it, augmented, on one picture", declare_data_show},
      {"why", "list the samples that made a step of a training", declare_data_why},
      {"convert", "copy a source into another format", declare_data_convert},
      {"index", "write the index beside a source's files: opening, choosing and checking without a pass",
       declare_data_index},
      {"query", "print the samples that a condition is true for", declare_data_query},
      {"verify", "compare all checksums", declare_data_verify},
  });
}

}  // namespace millrace::cli
