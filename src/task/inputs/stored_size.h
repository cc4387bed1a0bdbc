// Would smaller pictures be loaded faster?
#pragma once

#include <millrace/dataset.h>
#include <millrace/settings.h>

namespace millrace::task {

struct StoredSize {
  /// Shorter side that stored pictures would need for what a training looks at; 0: theirs is not clearly
  /// longer.
  int side = 0;
  /// Of loading one that `millrace pack --resize SIDE` made, in CPU time: so much of what it is now.
  double cost = 1;
};

/// Looks at a few pictures, and loads each both ways. `settings`: of an input of pictures.
StoredSize worthwhile_size(const Settings& settings, const data::Dataset& samples);

}  // namespace millrace::task
