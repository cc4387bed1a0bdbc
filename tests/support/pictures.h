// Little pictures and data sets for the tests of data.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <millrace/random.h>

#include "data/codecs/pictures/jpeg.h"
#include "data/codecs/pictures/picture.h"
#include "data/formats/tar_members.h"

namespace millrace::testing {

/// A smooth picture (so that JPEG keeps it nearly) that differs by `seed`.
inline data::Picture make_picture(int height, int width, int channels, uint64_t seed) {
  data::Picture picture{height, width, channels, {}};
  RandomStream random(seed, 1);
  const int base = static_cast<int>(random.below(128)), dx = static_cast<int>(random.below(4)),
            dy = static_cast<int>(random.below(4));
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < channels; ++c)
        picture.pixels.push_back(static_cast<uint8_t>(base + dx * x + dy * y + 20 * c));
  return picture;
}

/// HWC → CHW; `planes` holds channels·height·width bytes.
inline void to_planes(const data::Picture& picture, uint8_t* planes) {
  const auto channels = static_cast<size_t>(picture.channels), count = picture.pixels.size() / channels;
  for (size_t i = 0; i < picture.pixels.size(); ++i)
    planes[i % channels * count + i / channels] = picture.pixels[i];
}

inline std::string make_jpeg(int height, int width, int channels, uint64_t seed) {
  const auto bytes = data::encode_jpeg(make_picture(height, width, channels, seed), 90);
  return {bytes.begin(), bytes.end()};
}

/// Writes a file without flushing it to the disk, for tests that write many.
inline void put_file(const std::filesystem::path& path, const std::string& content) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << content;
}

using Members = std::vector<std::pair<std::string, std::string>>;

/// A USTAR archive; names that end in '/' are folders.
inline std::string make_tar(const Members& members) {
  std::string tar;
  for (const auto& [name, content] : members) {
    std::string header = data::tar_header(name, content.size());
    if (name.back() == '/') {
      header[156] = '5';
      unsigned sum = 8 * ' ';
      for (size_t i = 0; i < 512; ++i)
        if (i < 148 || i >= 156) sum += static_cast<uint8_t>(header[i]);
      snprintf(&header[148], 7, "%06o", sum);
    }
    tar += header + content + std::string(data::tar_padding(content.size()), '\0');
  }
  return tar + std::string(1024, '\0');
}

/// `per_class` JPEG files of 8x8 in each class folder.
inline Members make_members(const std::vector<std::string>& classes, int per_class, int channels = 3) {
  Members members;
  uint64_t seed = 0;
  for (const std::string& name : classes)
    for (int i = 0; i < per_class; ++i)
      members.emplace_back(name + "/" + std::to_string(1000 + i) + ".jpg", make_jpeg(8, 8, channels, ++seed));
  return members;
}

inline void write_members(const std::filesystem::path& folder, const Members& members) {
  for (const auto& [name, content] : members) {
    if (name.back() == '/')
      std::filesystem::create_directories(folder / name);
    else
      put_file(folder / name, content);
  }
}

/// The folder of real data sets, or "" when it is not there.
inline std::string real_data() {
  const char* variable = std::getenv("MILLRACE_DATA");
  const std::string folder = variable ? variable : "../shared/data";
  return std::filesystem::is_directory(folder) ? folder : "";
}

}  // namespace millrace::testing
