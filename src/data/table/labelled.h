// A data set's pictures with their classes: what a picture classifier trains on.
#pragma once

#include <memory>
#include <string>

#include "data/table/dataset.h"
#include "data/table/source.h"

namespace millrace::data {

/// The first column of pictures, and the classes in a column named label, cls, class or target, else in the only column of
/// whole numbers. Whole numbers ≥ 0 are classes as they are (of a list of numbers, the first); texts are classes in
/// alphabetical order. InputError says which columns there are when it finds none, and which sample has no class.
std::unique_ptr<Source> labelled_pictures(std::shared_ptr<const Dataset> dataset);
/// False where labelled_pictures() would say that there is no column of pictures or none of classes.
bool has_pictures_and_labels(const Dataset& dataset);
/// Samples of any columns as a source without classes (labels are -1) and pictures: all columns but the key are extra ones.
std::unique_ptr<Source> rows_of(std::shared_ptr<const Dataset> dataset);
/// The picture and the class of a sample, by the same rules: the class is a whole number or a text. InputError says what is
/// missing.
struct LabelledSample {
  Sample picture;
  Value label;
};
LabelledSample labelled_sample(const Dataset& dataset, int64_t index);
/// What open_source() opens, and pictures without classes: those are all of one without a name. InputError where there are none.
std::unique_ptr<Source> open_pictures(const std::string& path);
/// A value of a column of pictures; empty where there is none. It shares the value's memory.
Sample stored_picture(const Value& value);
/// Pictures whose classes do not matter: all are of one without a name.
std::unique_ptr<Source> unlabelled_pictures(std::shared_ptr<const Dataset> dataset);

}  // namespace millrace::data
