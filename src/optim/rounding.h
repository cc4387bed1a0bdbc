// What rounding may do to the results of a graph, found by trying.
#pragma once

#include <millrace/graph.h>

namespace millrace::optim {

/// What a precision leaves of numbers.
struct Rounding {
  double convolutions;  // error of a convolution's result, as a part of the largest one
  double products;      // the same of a product's, and of attention's
  double elements;      // of a number that is added to others, as a part of itself
};

/// The graph of a training step whose forward and backward pass, loops too, are as far off as that. Zeros
/// stay. The signs are those of draw `number`, or with `opposite` the others: whatever hangs on the sign of a
/// number that is as near to zero as that (a ReLU) so goes the other way in one of both.
Graph disturbed(const Graph& graph, const Rounding& rounding, int64_t number, bool opposite);

}  // namespace millrace::optim
