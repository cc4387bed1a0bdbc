#include "task/prediction_records.h"

namespace millrace::task {

void write_rows(RecordWriter& to, const std::vector<RowRecord>& rows) {
  to.number(static_cast<uint64_t>(rows.size()));
  for (const RowRecord& row : rows) {
    to.number(row.sample);
    to.text(row.why);
    to.number(static_cast<uint64_t>(row.values.size()));
    for (const data::Value& value : row.values) to.value(value);
    to.text(row.name);
  }
}

std::vector<RowRecord> read_rows(RecordReader& from) {
  std::vector<RowRecord> rows;
  for (uint64_t left = from.number<uint64_t>(); left-- > 0;) {
    RowRecord& row = rows.emplace_back();
    row.sample = from.number<int64_t>();
    row.why = from.text();
    for (uint64_t values = from.number<uint64_t>(); values-- > 0;) row.values.push_back(from.value());
    row.name = from.text();
  }
  return rows;
}

}  // namespace millrace::task
