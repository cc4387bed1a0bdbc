// Rows of a table that belong together, as one sample: the documents of a query.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <millrace/dataset.h>

namespace millrace::data {

/// The data set with one sample for the rows of each value of a column, in the order in which the values come
/// first; rows keep their order. A sample has the columns of the table and reads as its first row; rows()
/// tells all of them. InputError where the column is not there, holds neither numbers nor texts, or a row has
/// no value in it.
std::shared_ptr<const Dataset> grouped(std::shared_ptr<const Dataset> table, const std::string& column);
/// The column that usually says which rows are of one query: qid or query_id, of texts or whole numbers, or
/// query, of the latter; "" for none.
std::string query_column(const Dataset& dataset);
/// All rows of the samples of a data set that is made of such samples, one sample after the other.
std::shared_ptr<const Dataset> rows_of(const Dataset& samples);
/// How many rows sample i has.
std::vector<int64_t> group_sizes(const Dataset& samples);

}  // namespace millrace::data
