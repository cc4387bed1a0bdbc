// Vision transformer (Dosovitskiy et al., arXiv 2010.11929) with the mean over patches in place of a class
// token (Beyer et al., arXiv 2205.01580).
#include "base/format.h"
#include "nn/models/architecture.h"
#include "nn/models/models.h"
#include "nn/models/transformer_block.h"

namespace millrace::nn::models {
namespace {

class VisionTransformer : public Module {
 public:
  VisionTransformer(const ModelOptions& o, const Shape& picture, int64_t patch, double drop_path)
      : patches_(picture[1].size() / patch * (picture[2].size() / patch)),
        cut_(make<Conv2d>("patch", picture[0].size(), o.width, patch, ConvOptions{.stride = patch})),
        positions_(parameter("pos", {patches_, o.width}, init::normal(0, 0.02))),
        drop_(make<Dropout>("drop", o.dropout)),
        blocks_(make<TransformerBlocks>("blocks", o, BlockStyle{.drop_path = drop_path})),
        norm_(make<LayerNorm>("norm", o.width)),
        head_(make<Linear>("head", o.width, o.classes)) {}

  Tensor forward(const Tensor& x) override {
    const Tensor map = cut_(x);  // [batch, width, rows, columns]
    const Tensor patches = transpose(reshape(map, {map.dim(0), map.dim(1), patches_}), {0, 2, 1});
    return head_(norm_(blocks_(drop_(patches + positions_))).mean({1}));
  }

 private:
  int64_t patches_;
  Conv2d& cut_;
  Tensor& positions_;
  Dropout& drop_;
  TransformerBlocks& blocks_;
  LayerNorm& norm_;
  Linear& head_;
};

/// As said; else 16 of pictures from 112 on, 4 of smaller ones.
int64_t patch_of(const Settings& settings, int64_t height, int64_t width) {
  int64_t patch = settings.integer("patch");
  if (patch == 0) patch = std::min(height, width) >= 112 ? 16 : 4;
  if (height % patch == 0 && width % patch == 0) return patch;
  std::string sizes;
  for (int64_t size = 2; size <= std::min(height, width); ++size)
    if (height % size == 0 && width % size == 0)
      sizes += fmt::format("{}{}", sizes.empty() ? "" : ", ", size);
  fail<InputError>(
      "pictures of {} x {} cannot be cut into patches of {} x {}; {}", height, width, patch, patch,
      sizes.empty() ? "give input.size another value" : fmt::format("model.patch can be {}", sizes));
}

Model vit(const std::string& kind, const Settings& settings, const ModelOptions& given) {
  ModelOptions options = sized(given, settings);
  require_heads(options);
  const Shape input = picture_shape(options, {3, 224, 224}, kind);
  if (options.classes == 0) options.classes = 1000;
  const int64_t patch = patch_of(settings, input[1].size(), input[2].size());
  return {kind,
          std::make_shared<VisionTransformer>(options, input, patch, settings.number("drop_path")),
          {{"x0", batch_of(input)}}};
}

}  // namespace

MILLRACE_ARCHITECTURE(vit){
    .name = "vit",
    .doc = "vision transformer over square patches",
    .takes = "picture",
    .settings = {width_setting(),
                 depth_setting(),
                 heads_setting(),
                 dropout_setting(),
                 drop_path_setting(),
                 {"patch", "pixels of a patch's side; 0: 16 of pictures from 112 on, 4 of smaller ones",
                  int64_t{0}, 0, 1024}},
    .make = vit,
};

}  // namespace millrace::nn::models
