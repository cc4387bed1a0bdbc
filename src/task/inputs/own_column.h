// Which column holds an input's pictures or sounds where the recipe does not say.
#pragma once

#include <string>

#include "task/reading.h"

namespace millrace::task {

/// In the data to train on: the one that nothing else takes, or "" where any will do: there is only one, or
/// no sample has two of them (.jpg here, .png there). InputError where samples have several, naming them.
std::string own_column(const Section& section, const Reading& reading, data::ColumnKind kind);

/// In other data, where the recipe says nothing: of several columns the one named as in the data that was
/// trained on, `trained`; "" where any will do. InputError where samples have several of other names.
std::string same_column(const data::Dataset& samples, data::ColumnKind kind, const std::string& trained);

/// What same_column() is to be told later: the name of the only column of the kind, else "".
std::string only_column(const data::Dataset& samples, data::ColumnKind kind);

}  // namespace millrace::task
