// The graph of a model for sizes that nobody compiled it for, learnt from those for some.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <millrace/program.h>

#include "model_formats/mill_weights.h"

namespace millrace::mill {

/// The graph for any sizes between some of each dimension.
struct OpenGraph {
  std::string text;  // sized_text.h; empty: there is none, and `why_not` says why
  std::string why_not;
  std::map<std::string, std::pair<int64_t, int64_t>> sizes;
};

/// Learns it; the constants that it needs are added to the weights. What the graph says is compared with the
/// model for more sizes than those; that is no proof for all between them.
OpenGraph learn_graph(const SessionModel& model, const CompileOptions& compile, Weights& weights);

/// How far two arrays of one type are apart, as a part of the larger one's largest number.
double apart(const Array& a, const Array& b);

std::vector<Array> made_up_inputs(const SessionModel& model, const Bindings& sizes);

}  // namespace millrace::mill
