// Weights of another training to begin with.
#pragma once

#include <string>
#include <vector>

#include "task/task.h"

namespace millrace::train {

/// Takes the weights that train.init_from names, where it names some: all of the model but its heads must be
/// in the file, under the same names and in the same shapes. A head, the parameters behind the last product
/// or convolution, is taken where it fits and is for the same classes, and else stays as it was drawn. Gives
/// what was taken and what not, a line each. InputError says what does not fit; IoError.
std::vector<std::string> init_weights(task::Task& task);

}  // namespace millrace::train
