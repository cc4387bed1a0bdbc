// A data set's pictures with their classes: what a picture classifier trains on.
#pragma once

#include <memory>

#include "data/dataset.h"
#include "data/source.h"

namespace millrace::data {

/// The first column of pictures, and the classes in a column named label, cls, class or target, else in the only column of
/// whole numbers. Whole numbers ≥ 0 are classes as they are (of a list of numbers, the first); texts are classes in
/// alphabetical order. InputError says which columns there are when it finds none, and which sample has no class.
std::unique_ptr<Source> labelled_pictures(std::shared_ptr<const Dataset> dataset);
/// Pictures whose classes do not matter: all are of one without a name.
std::unique_ptr<Source> unlabelled_pictures(std::shared_ptr<const Dataset> dataset);

}  // namespace millrace::data
