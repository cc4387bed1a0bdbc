// millrace data VERB: looking at data and converting it; each verb is a file here.
#include "cli/verbs.h"

namespace millrace::cli {

namespace {

Action declare_data(Command& command) {
  command.footer(
      "  millrace data head train.rec\n"
      "  millrace data stat train.tar test.tar\n"
      "  millrace data convert train.rec train.beton --format beton\n"
      "  millrace data index train.tar\n"
      "  millrace data query train.tar 'label in (3, 5) and width > 200'\n");
  return command.choose(data_verbs());
}

}  // namespace

MILLRACE_VERB(data){"data", "look at data of any format, and convert it", declare_data, 30};

}  // namespace millrace::cli
