// A part of a source, to measure on.
#pragma once

#include <memory>

#include "data/table/source.h"

namespace millrace::data {

/// `count` samples of a source, spread evenly over it, with all its classes; the source itself when it has no more.
std::shared_ptr<const Source> sample_of(std::shared_ptr<const Source> source, int64_t count);

}  // namespace millrace::data
