// Data sets packed whole.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "data/tools/pack/pack.h"

namespace millrace::testing {

/// One part; nothing may stop it.
inline data::PackResult pack(const data::Dataset& set, const std::filesystem::path& out,
                             const std::string& name, const data::PackOptions& options = {}) {
  const std::shared_ptr<const data::Dataset> borrowed(std::shared_ptr<const data::Dataset>(), &set);
  return data::pack({data::PackPart{borrowed, name}}, out, options).at(0);
}

}  // namespace millrace::testing
