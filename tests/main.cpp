#define DOCTEST_CONFIG_IMPLEMENT
#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>

// Kernels and choices are kept beside the program, where later runs and the end-to-end tests find them: never
// in the user's own cache folder.
int main(int count, char** arguments) {
  std::error_code none;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", none);
  if (!none) setenv("MILLRACE_CACHE", (program.parent_path() / "test-cache").c_str(), 0);
  return doctest::Context(count, arguments).run();
}
