#include "data/tools/letters.h"

#include <ft2build.h>
#include FT_FREETYPE_H
#include FT_OUTLINE_H

#include <algorithm>
#include <cmath>
#include <mutex>

#include <millrace/random.h>

#include "base/file.h"
#include "base/format.h"
#include "base/parallel_for.h"
#include "data/codecs/pictures/jpeg.h"
#include "data/codecs/pictures/picture.h"

namespace millrace::data {
namespace fs = std::filesystem;
namespace {

constexpr int side = 32, classes = 10, jpeg_quality = 90;

/// The faces of a split. FreeType's objects belong to one thread, so each block of pictures opens its own.
class Fonts {
 public:
  explicit Fonts(const std::vector<fs::path>& files) {
    if (FT_Init_FreeType(&library_) != 0) fail<InternalError>("FreeType cannot be started");
    for (const fs::path& file : files) {
      FT_Face face = nullptr;
      if (FT_New_Face(library_, file.c_str(), 0, &face) != 0 || FT_Set_Pixel_Sizes(face, 0, side) != 0) {
        FT_Done_FreeType(library_);
        fail<IoError>("{}: FreeType cannot read this font; install its package again", file.string());
      }
      faces_.push_back(face);
    }
  }
  ~Fonts() { FT_Done_FreeType(library_); }  // and its faces
  Fonts(const Fonts&) = delete;
  Fonts& operator=(const Fonts&) = delete;

  FT_Library library() const { return library_; }
  FT_Face face(size_t index) const { return faces_[index]; }

 private:
  FT_Library library_ = nullptr;
  std::vector<FT_Face> faces_;
};

double between(RandomStream& random, double least, double most) {
  return least + (most - least) * random.uniform();
}

/// Ink coverage (0 to 255) of a letter whose longer side has so many pixels: sheared, turned, and moved off
/// the centre.
std::vector<uint8_t> coverage(const Fonts& fonts, size_t font, char letter, double pixels,
                              RandomStream& random) {
  FT_Face face = fonts.face(font);
  if (FT_Load_Char(face, static_cast<FT_ULong>(letter), FT_LOAD_NO_HINTING | FT_LOAD_NO_BITMAP) != 0 ||
      face->glyph->format != FT_GLYPH_FORMAT_OUTLINE)
    fail<IoError>("the font {} has no outline of the letter {}; install its package again", face->family_name,
                  letter);
  FT_Outline* outline = &face->glyph->outline;
  FT_BBox box;
  FT_Outline_Get_CBox(outline, &box);
  const double width = static_cast<double>(box.xMax - box.xMin),
               height = static_cast<double>(box.yMax - box.yMin);
  const double extent = std::max({width, height, 1.0});

  const double size = pixels * 64 / extent;  // in 26.6 fixed point
  const double angle = between(random, -15, 15) * (3.14159265358979323846 / 180);
  const double shear = between(random, -0.25, 0.25), stretch = between(random, 0.85, 1.15);
  const double cosine = std::cos(angle), sine = std::sin(angle);
  // rotation · shear · scale
  const double xx = size * stretch * cosine, xy = size * (shear * cosine - sine);
  const double yx = size * stretch * sine, yy = size * (shear * sine + cosine);
  const auto fixed = [](double value) { return static_cast<FT_Fixed>(std::lround(value * 65536)); };
  FT_Outline_Translate(outline, -(box.xMin + box.xMax) / 2, -(box.yMin + box.yMax) / 2);
  FT_Matrix matrix{fixed(xx), fixed(xy), fixed(yx), fixed(yy)};
  FT_Outline_Transform(outline, &matrix);
  FT_Outline_Get_CBox(outline, &box);
  const double room_x = std::max(0.0, side / 2.0 - 1 - static_cast<double>(box.xMax - box.xMin) / 128);
  const double room_y = std::max(0.0, side / 2.0 - 1 - static_cast<double>(box.yMax - box.yMin) / 128);
  const double x = side / 2.0 + between(random, -1, 1) * std::min(room_x, 4.0);
  const double y = side / 2.0 + between(random, -1, 1) * std::min(room_y, 4.0);
  FT_Outline_Translate(outline, std::lround(x * 64) - (box.xMin + box.xMax) / 2,
                       std::lround(y * 64) - (box.yMin + box.yMax) / 2);

  std::vector<uint8_t> ink(side * side, 0);
  FT_Bitmap bitmap{};
  bitmap.rows = bitmap.width = side;
  bitmap.pitch = side;
  bitmap.buffer = ink.data();
  bitmap.num_grays = 256;
  bitmap.pixel_mode = FT_PIXEL_MODE_GRAY;
  if (FT_Outline_Get_Bitmap(fonts.library(), outline, &bitmap) != 0)
    fail<IoError>("FreeType cannot render the letter {} of {}", letter, face->family_name);
  return ink;
}

std::vector<uint8_t> render(const Fonts& fonts, size_t font, char letter, double pixels,
                            RandomStream& random) {
  const std::vector<uint8_t> ink = coverage(fonts, font, letter, pixels, random);
  // Dark on light or light on dark, with a contrast of at least 80 grey values.
  const double paper_side = between(random, 0, 88), contrast = between(random, 80, 160);
  const bool dark_paper = random.next() & 1;
  const double paper = dark_paper ? paper_side : 255 - paper_side;
  const double letter_grey = dark_paper ? paper + contrast : paper - contrast;
  const double noise = between(random, 0, 16);
  Picture picture{side, side, 1, std::vector<uint8_t>(side * side)};
  for (size_t i = 0; i < picture.pixels.size(); ++i) {
    const double clean = paper + (letter_grey - paper) * (ink[i] / 255.0);
    // Four uniform numbers make a bell shape of standard deviation sqrt(1/3), without libm's log.
    double bell = -2;
    for (int k = 0; k < 4; ++k) bell += random.uniform();
    picture.pixels[i] = static_cast<uint8_t>(std::clamp(std::lround(clean + noise * bell), 0L, 255L));
  }
  return encode_jpeg(picture, jpeg_quality);
}

/// The font files of a split; IoError when one is missing.
std::vector<fs::path> font_files(const fs::path& folder, bool held_out) {
  std::vector<fs::path> files;
  for (const Typeface& typeface : letter_typefaces()) {
    for (const std::string& name : typeface.files) {
      const fs::path file = folder / name;
      if (!fs::exists(file))
        fail<IoError>("{}: the font {} is missing; install it with: apt-get install {}", file.string(),
                      typeface.name, typeface.package);
      if (typeface.held_out == held_out) files.push_back(file);
    }
  }
  return files;
}

struct Split {
  std::string name;
  int64_t count = 0;
  std::vector<fs::path> fonts;
};

/// A sign's line of the table: from how far, and through which lens, it was seen that large.
std::string sign_row(const std::string& file, char letter, double pixels, RandomStream& random) {
  const double metres = std::round(between(random, 10, 30) * 10) / 10;
  const bool tele = random.next() & 1;
  // Pixels of a centimetre at a metre's distance.
  const double centimetres = pixels * metres / (tele ? 30 : 20);
  return fmt::format("{},{:.1f},{},{},{:.2f}\n", file, metres, tele ? "tele" : "wide", letter, centimetres);
}

/// Pictures go round the classes, and within a class round the fonts, so that all are about equally frequent.
void render_split(const fs::path& folder, const Split& split, const LettersOptions& options, uint64_t stream,
                  const std::function<void()>& tick) {
  fs::create_directories(folder);
  for (int label = 0; label < classes && !options.signs; ++label)
    fs::create_directories(folder / std::string(1, static_cast<char>('A' + label)));
  std::vector<std::string> rows(options.signs ? static_cast<size_t>(split.count) : 0);
  parallel_parts(split.count, 250, options.threads, [&](int64_t first, int64_t end) {
    const Fonts fonts(split.fonts);
    for (int64_t i = first; i < end; ++i) {
      RandomStream random(options.seed, stream, static_cast<uint64_t>(i));
      const char letter = static_cast<char>('A' + i % classes);
      const auto font = static_cast<size_t>(i / classes) % split.fonts.size();
      const double pixels = between(random, 15, 25);
      const std::string file =
          options.signs ? fmt::format("{:05}.jpg", i) : fmt::format("{}/{:05}.jpg", letter, i / classes);
      // Flushing 24,000 little files to the disk one by one would take minutes.
      write_unflushed(folder / file, render(fonts, font, letter, pixels, random));
      // Drawn last, so that the pictures are those of letters.
      if (options.signs) rows[static_cast<size_t>(i)] = sign_row(file, letter, pixels, random);
      tick();
    }
  });
  if (!options.signs) return;
  std::string table = "file,distance,lens,letter,size\n";
  for (const std::string& row : rows) table += row;
  write_unflushed(folder / "labels.csv", {reinterpret_cast<const uint8_t*>(table.data()), table.size()});
}

}  // namespace

const std::vector<Typeface>& letter_typefaces() {
  static const std::vector<Typeface> list = {
      {"DejaVu Sans",
       "fonts-dejavu-core",
       {"truetype/dejavu/DejaVuSans.ttf", "truetype/dejavu/DejaVuSans-Bold.ttf"}},
      {"DejaVu Serif",
       "fonts-dejavu-core",
       {"truetype/dejavu/DejaVuSerif.ttf", "truetype/dejavu/DejaVuSerif-Bold.ttf"}},
      {"DejaVu Sans Mono", "fonts-dejavu-core", {"truetype/dejavu/DejaVuSansMono.ttf"}},
      {"Liberation Sans",
       "fonts-liberation2",
       {"truetype/liberation2/LiberationSans-Regular.ttf", "truetype/liberation2/LiberationSans-Bold.ttf"}},
      {"Liberation Serif",
       "fonts-liberation2",
       {"truetype/liberation2/LiberationSerif-Regular.ttf", "truetype/liberation2/LiberationSerif-Bold.ttf"}},
      {"Liberation Mono", "fonts-liberation2", {"truetype/liberation2/LiberationMono-Regular.ttf"}},
      {"FreeSans", "fonts-freefont-ttf", {"truetype/freefont/FreeSans.ttf"}},
      {"FreeSerif",
       "fonts-freefont-ttf",
       {"truetype/freefont/FreeSerif.ttf", "truetype/freefont/FreeSerifBold.ttf"}},
      {"FreeMono",
       "fonts-freefont-ttf",
       {"truetype/freefont/FreeMono.ttf", "truetype/freefont/FreeMonoBold.ttf"}},
      {"Lato", "fonts-lato", {"truetype/lato/Lato-Regular.ttf", "truetype/lato/Lato-Black.ttf"}},
      {"Linux Libertine", "fonts-linuxlibertine", {"opentype/linux-libertine/LinLibertine_R.otf"}},
      {"Linux Biolinum",
       "fonts-linuxlibertine",
       {"opentype/linux-libertine/LinBiolinum_R.otf", "opentype/linux-libertine/LinBiolinum_RB.otf"}},
      {"Roboto",
       "fonts-roboto-unhinted",
       {"truetype/roboto/unhinted/RobotoTTF/Roboto-Regular.ttf",
        "truetype/roboto/unhinted/RobotoTTF/Roboto-Bold.ttf"}},
      {"Quattrocento", "fonts-quattrocento", {"opentype/quattrocento/Quattrocento-Regular.otf"}},
      {"Comfortaa", "fonts-comfortaa", {"truetype/comfortaa/Comfortaa-Regular.ttf"}},
      {"Open Sans",
       "fonts-open-sans",
       {"truetype/open-sans/OpenSans-Regular.ttf", "truetype/open-sans/OpenSans-Bold.ttf"},
       true},
      {"Caladea",
       "fonts-crosextra-caladea",
       {"truetype/crosextra/Caladea-Regular.ttf", "truetype/crosextra/Caladea-Bold.ttf"},
       true},
      {"Inconsolata", "fonts-inconsolata", {"truetype/inconsolata/Inconsolata.otf"}, true},
      {"Cantarell",
       "fonts-cantarell",
       {"opentype/cantarell/Cantarell-Regular.otf", "opentype/cantarell/Cantarell-Bold.otf"},
       true},
  };
  return list;
}

void render_letters(const fs::path& out, const LettersOptions& options) {
  if (fs::exists(out))
    fail<InputError>("{}: exists already; remove it or choose another folder", out.string());
  const Split train{"train", options.train, font_files(options.fonts, false)};
  const Split test{"test", options.test, font_files(options.fonts, true)};
  if (train.count < classes || test.count < classes)
    fail<InputError>("{} and {} letters: each split needs at least {}", train.count, test.count, classes);
  fs::path partial = out;
  partial += ".partial";
  std::mutex mutex;
  int64_t done = 0;
  const auto tick = [&] {
    const std::lock_guard lock(mutex);
    ++done;
    if (options.progress && (done % 500 == 0 || done == train.count + test.count))
      options.progress(done, train.count + test.count);
  };
  try {
    fs::remove_all(partial);
    render_split(partial / train.name, train, options, 1, tick);
    render_split(partial / test.name, test, options, 2, tick);
    fs::rename(partial, out);
  } catch (const fs::filesystem_error& error) {
    fail<IoError>("{}: cannot be written: {}", out.string(), error.code().message());
  }
}

}  // namespace millrace::data
