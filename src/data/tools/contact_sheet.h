// Many small pictures on one, to look at.
#pragma once

#include <span>

#include "data/codecs/pictures/extent.h"
#include "data/codecs/pictures/picture.h"
#include "data/feed/batch.h"

namespace millrace::data {

/// Picture `index` of a batch, as it goes into the model.
Picture picture_of(const Batch& batch, const Extent& extent, int64_t index);

/// The first `count` pictures of a batch in rows of `columns`, left to right, with white lines of two pixels between them;
/// pictures of less than 32 pixels are enlarged by a whole number.
Picture contact_sheet(const Batch& batch, const Extent& extent, int64_t count, int columns);

}  // namespace millrace::data
