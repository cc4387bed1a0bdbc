// The C library's functions are replaced for the whole test program and all libraries in it; these do the
// same, and note it while somebody looks.
#include "support/disk_calls.h"

#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

thread_local std::vector<std::string>* noted_calls = nullptr;

void note_call(std::string call) {
  if (noted_calls) noted_calls->push_back(std::move(call));
}

}  // namespace

extern "C" {

int fsync(int file) {
  if (noted_calls) {
    struct stat status {};
    const bool folder = ::fstat(file, &status) == 0 && S_ISDIR(status.st_mode);
    std::error_code none;
    const auto path = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(file), none);
    note_call(folder ? "flush folder " + path.string() : "flush file");
  }
  return 0;  // what tests write need not outlive the machine, and waiting for its disk takes long beside
             // others
}

int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) noexcept {
  note_call("link");
  return static_cast<int>(::syscall(SYS_linkat, from_folder, from, to_folder, to, flags));
}

int rename(const char* from, const char* to) noexcept {
  note_call("rename");
  return static_cast<int>(::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

}  // extern "C"

namespace millrace::testing {

std::vector<std::string> disk_calls(const std::function<void()>& code) {
  std::vector<std::string> calls;
  noted_calls = &calls;
  try {
    code();
  } catch (...) {
    noted_calls = nullptr;
    throw;
  }
  noted_calls = nullptr;
  return calls;
}

}  // namespace millrace::testing
