// GIF, with giflib.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "data/codecs/pictures/picture.h"

namespace millrace::data {

bool is_gif(std::span<const uint8_t> bytes);

/// Decodes the first picture of a GIF to colour. Where it does not cover the canvas, the rest is the
/// background colour, and its transparent pixels have the colours of their palette. Returns "" or the reason
/// why it cannot.
[[nodiscard]] std::string decode_gif(std::span<const uint8_t> bytes, Picture& picture);

}  // namespace millrace::data
