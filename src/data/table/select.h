// Some of the samples of a data set, as one.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <millrace/dataset.h>

#include "data/table/query.h"

namespace millrace::data {

/// InputError when it is null.
void require_set(const std::shared_ptr<const Dataset>& dataset);

/// The samples of a data set that a condition is true for, in order. `label` means the column of classes
/// (cls, class, target) where none is called so. InputError, showing the place, when a column is unknown, not
/// small, or compared with what it cannot be.
std::vector<int64_t> matching(const Dataset& dataset, const Query& query);
/// The same; InputError when there is none.
std::vector<int64_t> chosen(const Dataset& dataset, const Query& query);

/// `count` samples, spread evenly over all; the data set itself when it has no more.
std::shared_ptr<const Dataset> sample_of(std::shared_ptr<const Dataset> dataset, int64_t count);

}  // namespace millrace::data
