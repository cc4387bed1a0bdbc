// What gives classes away without being a column: words in texts, how files are written, marks in pictures.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "check/columns.h"
#include "check/context.h"

namespace millrace::check {

/// How much of what is to be known the cell tells, on samples that it was not learnt from (every other one):
/// 0: no more than the most frequent class, 1: all. Classes of -1 are unknown.
double told_of_classes(const std::vector<int64_t>& cells, const std::vector<int64_t>& classes);

/// Cells that a column's values fall into: of numbers with many values so many quantiles, else the values.
std::vector<int64_t> cells_of(const Column& column, size_t quantiles = 64);

struct Telltale {
  std::string kind;       // "word"
  std::string what = {};  // what tells most; "" where nothing does
  double told = 0;
};

/// One word for each class, that texts of this class have and no others. `targets`: of read_targets().
Telltale telling_words(const Context& context, const task::Input& input, const Targets& targets);
/// The size or format of a picture's file, the length, rate or channels of a sound's.
Telltale telling_file(const Context& context, const Targets& targets);
/// A place where pictures of one class of the targets are nearly all of one brightness, and others are not.
Telltale telling_place(const Context& context, const task::Input& input, const Targets& targets);

}  // namespace millrace::check
