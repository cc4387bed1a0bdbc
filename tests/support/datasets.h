// Data sets of any format in tests: written, read back, compared, damaged.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <millrace/dataset.h>

#include "support/refusal.h"

namespace millrace::testing {

using Rows = std::vector<std::vector<data::Value>>;

/// Writes rows of these columns by the format of this name.
void write_rows(const std::string& format, const std::string& path, const std::vector<data::Column>& columns,
                const Rows& rows);
void write_rows(data::DatasetWriter& writer, const Rows& rows);
Rows read_rows(const data::Dataset& dataset);

/// The same kind of value with the same content.
bool same(const data::Value& a, const data::Value& b);
/// "" when both are the same, else the first difference.
std::string difference(const Rows& a, const Rows& b);

data::Value bytes_value(const std::string& content);

/// Reads and verifies all samples of the data set that `open` opens. "" or the Error's message; any other
/// exception is let through.
std::string read_all(const std::function<std::unique_ptr<data::Dataset>()>& open);

/// What was put into the fixtures cifar20*: from cifar20.json.
struct Truth {
  int64_t label = 0;
  double score = 0;
  std::string sha256;
};
std::vector<Truth> cifar20(const std::string& real_data);
std::string sha256(const data::Value& bytes);

}  // namespace millrace::testing
