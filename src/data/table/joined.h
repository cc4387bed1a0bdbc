// Several sources as one.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/table/source.h"

namespace millrace::data {

/// The samples of sources one after the other, with the classes of all: those of one name are one class. When sources differ
/// in their classes, they are sorted by name (numbers by value). What a sample is called begins with its source's name.
std::unique_ptr<Source> join(std::vector<std::pair<std::string, std::shared_ptr<const Source>>> sources);

}  // namespace millrace::data
