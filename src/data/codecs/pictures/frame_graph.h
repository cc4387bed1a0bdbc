// Frames in a graph, for models that take decoded pictures of one size as they are.
#pragma once

#include <millrace/graph.h>

#include "data/codecs/pictures/frame.h"

namespace millrace::data {

/// What the loader makes of pictures with this frame, to the byte: `pictures` u8 [batch, C, H, W] resized and
/// cropped. The frame's part is the whole picture, as FrameRule gives it; InternalError when not.
millrace::Value frame_pictures(Graph& graph, millrace::Value pictures, const Frame& frame);

}  // namespace millrace::data
