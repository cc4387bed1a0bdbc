#include "data/codecs/pictures/frame_graph.h"

#include <limits>

#include "base/format.h"

namespace millrace::data {

millrace::Value frame_pictures(Graph& graph, millrace::Value pictures, const Frame& frame) {
  const Shape& shape = graph.type(pictures).shape;
  const Box whole{0, 0, static_cast<int>(shape[2].size()), static_cast<int>(shape[3].size())};
  if (!(frame.part == whole)) fail<InternalError>("only frames of whole pictures can be part of a graph");
  if (frame.height != whole.height || frame.width != whole.width)
    pictures =
        graph.add("resize", {pictures}, {{"height", int64_t{frame.height}}, {"width", int64_t{frame.width}}});
  const Box& keep = frame.keep;
  if (keep == Box{0, 0, frame.height, frame.width}) return pictures;
  constexpr int64_t end = std::numeric_limits<int64_t>::max();
  return graph.add(
      "slice", {pictures},
      {{"starts", std::vector<int64_t>{0, 0, keep.top, keep.left}},
       {"ends", std::vector<int64_t>{end, end, keep.top + keep.height, keep.left + keep.width}}});
}

}  // namespace millrace::data
