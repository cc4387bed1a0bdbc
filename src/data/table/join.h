// Several data sets as one.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <millrace/dataset.h>

namespace millrace::data {

/// The samples of data sets one after the other, with the columns of all: those of one name and kind are one,
/// and a sample has no value in those of others. Where all have a class_column() (labels.h), so has the
/// whole, with the classes of all: those of one name are one class, and when the sets differ in their
/// classes, they are sorted by name (numbers by value). What a sample is called begins with the name of its
/// set.
std::shared_ptr<const Dataset> join(std::vector<std::pair<std::string, std::shared_ptr<const Dataset>>> sets);

}  // namespace millrace::data
