// Many small pictures on one, with a line of text below each, to look at.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <millrace/array.h>

#include "data/codecs/pictures/picture.h"

namespace millrace::data {

/// Planes u8 [C, H, W] as a picture; of another number of channels than 3 the first is taken as grey.
/// InputError for another type or shape.
Picture picture_of(const Array& planes);

/// One cell of a sheet.
struct Tile {
  Picture picture;
  std::string label;  // UTF-8; cut where it is wider than the picture
};

/// Tiles in rows of `columns`, left to right, with white lines of two pixels between them. Pictures whose
/// longer side has less than 96 pixels are enlarged by a whole number. Labels are drawn below them in a
/// typeface of `fonts` (one of those that the data set of letters is drawn in); `labelled` says whether there
/// was one. Grey where all tiles are.
struct ContactSheet {
  Picture picture;
  bool labelled = false;
};
ContactSheet contact_sheet(std::span<const Tile> tiles, int columns,
                           const std::filesystem::path& fonts = "/usr/share/fonts");

/// As a file.
std::vector<uint8_t> png_of(const ContactSheet& sheet);

}  // namespace millrace::data
