// The embedded data set: the letters A to J, rendered from typefaces that Debian packages. 32x32 grey JPEG
// files in a folder for each class, under train/ and test/; the typefaces of test/ do not occur in train/.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace millrace::data {

/// A typeface and where it comes from.
struct Typeface {
  std::string name;                // "DejaVu Sans"
  std::string package;             // the Debian package
  std::vector<std::string> files;  // its styles, below the folder of fonts
  bool held_out = false;           // only in the test split
};

/// All typefaces used, in a fixed order.
const std::vector<Typeface>& letter_typefaces();

struct LettersOptions {
  int64_t train = 20'000, test = 4'000;
  uint64_t seed = 1;
  bool signs = false;  // with a table beside the pictures
  int threads = 0;     // 0: as many as there are CPUs
  std::filesystem::path fonts = "/usr/share/fonts";
  /// (pictures written, in all)
  std::function<void(int64_t, int64_t)> progress;
};

/// Writes OUT/train/A/00000.jpg … OUT/test/J/….jpg; of signs the same pictures as OUT/train/00000.jpg … with
/// OUT/train/labels.csv: the distance in metres and the lens that each is seen from, its letter, and its size
/// in centimetres, which follows from these and from how large it looks. Position, rotation, shear, scale,
/// grey values and noise of a picture depend on seed and number alone: the same bytes every time, for any
/// number of threads. The folder appears when it is complete (made beside it as OUT.partial first).
/// InputError when OUT exists; IoError when a font is missing, naming its Debian package, or when the disk is
/// full.
void render_letters(const std::filesystem::path& out, const LettersOptions& options = {});

}  // namespace millrace::data
