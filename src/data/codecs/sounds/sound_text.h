// Sounds for people.
#pragma once

#include <fmt/format.h>
#include <string>

namespace millrace::data {

/// "8000 Hz mono", "44100 Hz stereo", "48000 Hz, 6 channels".
inline std::string sound_kind(int rate, int channels) {
  return channels == 1   ? fmt::format("{} Hz mono", rate)
         : channels == 2 ? fmt::format("{} Hz stereo", rate)
                         : fmt::format("{} Hz, {} channels", rate, channels);
}

}  // namespace millrace::data
