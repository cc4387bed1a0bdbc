#define DOCTEST_CONFIG_IMPLEMENT
#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>

// Kernels and choices are kept beside the program, where later runs and the end-to-end tests find them (or in
// MILLRACE_TEST_CACHE): never in the user's own cache folder, which MILLRACE_CACHE may name.
int main(int count, char** arguments) {
  std::error_code none;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", none);
  const char* own = std::getenv("MILLRACE_TEST_CACHE");
  setenv("MILLRACE_CACHE", own ? own : (program.parent_path() / "test-cache").c_str(), 1);
  return doctest::Context(count, arguments).run();
}
