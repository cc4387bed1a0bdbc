// Columns of arrays as so many columns of numbers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <millrace/dataset.h>

namespace millrace::data {

/// The data set with a column of numbers for each element of the columns of arrays that say how many these
/// are (Dataset::elements()), "features[1]" for the one that the data number 1, in their place. `known`:
/// columns that are wanted beside: elements that the data leave out are there, too, and 0. The data set
/// itself where it has no such arrays.
std::shared_ptr<const Dataset> spread_arrays(std::shared_ptr<const Dataset> dataset,
                                             const std::vector<std::string>& known = {});

}  // namespace millrace::data
