// An empty cache folder for one test.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

#include "support/temp_folder.h"

namespace millrace::testing {

/// Points MILLRACE_CACHE to a folder of its own, and back at the end of the scope.
class CacheVariable {
 public:
  CacheVariable() {
    if (const char* value = std::getenv("MILLRACE_CACHE")) before_ = value;
    setenv("MILLRACE_CACHE", folder_.path().c_str(), 1);
  }
  ~CacheVariable() {
    if (before_)
      setenv("MILLRACE_CACHE", before_->c_str(), 1);
    else
      unsetenv("MILLRACE_CACHE");
  }
  CacheVariable(const CacheVariable&) = delete;
  CacheVariable& operator=(const CacheVariable&) = delete;

  const std::filesystem::path& path() const { return folder_.path(); }

 private:
  TempFolder folder_;
  std::optional<std::string> before_;
};

}  // namespace millrace::testing
