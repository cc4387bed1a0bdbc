// Which calls that make files lasting a piece of code makes, in order.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace millrace::testing {

/// "flush file", "flush folder PATH", "link" and "rename", as `code` calls fsync(), linkat() and rename()
/// from this thread.
std::vector<std::string> disk_calls(const std::function<void()>& code);

}  // namespace millrace::testing
