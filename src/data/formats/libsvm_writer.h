// Writing LIBSVM files (libsvm.cpp has the format).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <millrace/dataset.h>

namespace millrace::data {

/// The file of the queries of one of rows.
std::string queries_beside(const std::string& path);

/// Columns are label (integer or real), features (an array) or indices and values (arrays of one length,
/// indices growing, from 0), and query (integer). Indices are written from 1; zeros of features are left out.
/// Queries that are numbered from 0 in the order of the rows go into PATH.query, line by line their number of
/// rows; any others become qid:Q in their rows. InputError for other columns, missing values and numbers that
/// are not finite.
std::unique_ptr<DatasetWriter> create_libsvm(const std::string& path, const std::vector<Column>& columns);

}  // namespace millrace::data
