// Rows of tables: numbers, standardised in the graph, and ids of categories.
#include "task/inputs/table_input.h"

namespace millrace::task {

MILLRACE_INPUT(table){
    .name = "table",
    .doc = "columns of a table: numbers, and texts that are categories",
    .unit = "rows",
    .settings = table_settings(),
    .as_written = "categories",
    .left_out = "leave_out",
    .recognise = table_columns,
    .rank = 10,
    .check = check_table,
    .learn = [](const Section& section, const Reading& reading) -> std::unique_ptr<Input> {
      return std::make_unique<TableInput>(section, learn_table(section, reading));
    },
    .load = [](const Section& section, const std::string& encoding) -> std::unique_ptr<Input> {
      return std::make_unique<TableInput>(section, data::TableEncoder::parse(encoding));
    },
    .draft = draft_table,
};

}  // namespace millrace::task
