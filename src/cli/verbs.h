// One function a verb: declares its arguments and returns its action.
#pragma once

#include "cli/command.h"

namespace millrace::cli {

Action declare_letters(Command& command);
Action declare_pack(Command& command);
Action declare_data(Command& command);
Action declare_data_head(Command& command);
Action declare_data_tokens(Command& command);
Action declare_data_stat(Command& command);
Action declare_data_why(Command& command);
Action declare_data_show(Command& command);
Action declare_data_convert(Command& command);
Action declare_data_index(Command& command);
Action declare_data_query(Command& command);
Action declare_data_verify(Command& command);
Action declare_train(Command& command);
Action declare_ctl(Command& command);
Action declare_eval(Command& command);
Action declare_predict(Command& command);
Action declare_export(Command& command);
Action declare_explain(Command& command);
Action declare_estimate(Command& command);
Action declare_profile(Command& command);
Action declare_bench(Command& command);
Action declare_machine(Command& command);

}  // namespace millrace::cli
