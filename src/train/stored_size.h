// Would smaller pictures be loaded faster?
#pragma once

#include "data/table/dataset.h"
#include "train/recipe.h"

namespace millrace::train {

struct StoredSize {
  int side =
      0;  // shorter side that stored pictures would need for what a training looks at; 0: theirs is not clearly longer
  double cost =
      1;  // of loading one that `millrace pack --resize SIDE` made, in CPU time: so much of what it is now
};

/// Looks at a few pictures, and loads each both ways.
StoredSize worthwhile_size(const Recipe& recipe, const data::Dataset& samples);

}  // namespace millrace::train
