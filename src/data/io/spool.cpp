// "pipe:COMMAND" and "-", standard input: what comes out is kept in a temporary file, so that it can be read
// in any order.
#include "data/io/spool.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <sys/wait.h>
#include <unistd.h>

#include "base/format.h"
#include "data/io/temporary_file.h"

namespace millrace::data {
namespace {

Bytes output_of(const std::string& path) {
  const std::string command = path.substr(std::string_view("pipe:").size());
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (!pipe) fail<IoError>("{}: cannot be started: {}", path, std::strerror(errno));
  TemporaryFile file(path);
  try {
    file.fill(::fileno(pipe));
  } catch (...) {
    ::pclose(pipe);
    throw;
  }
  const int status = ::pclose(pipe);
  if (status != 0)
    fail<IoError>("{}: the command failed ({}); what it says stands above", path,
                  WIFEXITED(status) ? fmt::format("exit status {}", WEXITSTATUS(status))
                                    : fmt::format("signal {}", WTERMSIG(status)));
  return file.map();
}

}  // namespace

std::shared_ptr<const RandomAccessFile> spooled_file(const std::string& path) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const RandomAccessFile>> kept;
  const std::lock_guard lock(mutex);
  auto& file = kept[path];
  if (file) return file;
  if (path != "-") return file = memory_file(path, output_of(path));
  if (::isatty(STDIN_FILENO))
    fail<InputError>("-: standard input is a terminal; give data: cat x.tar | millrace …");
  TemporaryFile temporary("standard input");
  temporary.fill(STDIN_FILENO);
  return file = memory_file(path, temporary.map());
}

}  // namespace millrace::data
