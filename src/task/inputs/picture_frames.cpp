#include "task/inputs/picture_frames.h"

#include "base/format.h"
#include "data/augment/augment.h"

namespace millrace::task {

data::FrameRule evaluation_frames(const Settings& settings) {
  data::FrameRule rule{static_cast<int>(settings.integer("resize")),
                       static_cast<int>(settings.integer("crop"))};
  const std::vector<std::string>& augment = settings.texts("augment");
  if (rule.resize > 0 || rule.crop > 0 || augment.empty()) return rule;
  const data::Augmenter augmenter{std::span(augment).first(1)};
  if (augmenter.frames()) rule.resize = rule.crop = augmenter.framed({3, 1, 1}).height;
  return rule;
}

data::Frame prepared_frame(const Settings& settings, const data::Extent& extent, int height, int width) {
  const data::FrameRule rule = evaluation_frames(settings);
  data::Frame frame = data::whole_frame(height, width, extent.height, extent.width);
  if (rule.crop > 0) frame = rule.frame(height, width);
  if (frame.keep.height != extent.height || frame.keep.width != extent.width)
    fail<InternalError>("crop = {} gives other pictures than the model's", rule.crop);
  return frame;
}

}  // namespace millrace::task
