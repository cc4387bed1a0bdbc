#include "base/cpu.h"

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <sys/syscall.h>
#include <unistd.h>

#include <millrace/error.h>

#include "base/contains.h"
#include "base/format.h"

namespace millrace {
namespace {

using Words = std::set<std::string, std::less<>>;

/// What stands behind the colon of the first line of /proc/cpuinfo that begins so.
std::string told(std::string_view name) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (const size_t colon = line.find(": "); line.starts_with(name) && colon != std::string::npos)
      return line.substr(colon + 2);
  return "";
}

Words read_flags() {
  std::istringstream words(told("flags"));
  Words flags;
  for (std::string word; words >> word;)
    if (cpu_cap_allows(word)) flags.insert(word);
  return flags;
}

}  // namespace

const std::string& cpu_cap() {
  static const std::string cap = [] {
    const char* text = std::getenv("MILLRACE_CPU");
    const std::string word = text ? text : "";
    constexpr std::string_view known[] = {"", "avx2", "avx512", "avx512_bf16"};
    if (!contains(known, word))
      fail<InputError>(
          "MILLRACE_CPU is '{}', but caps at avx2, avx512 or avx512_bf16 only; CPUs without AVX2 are not "
          "supported",
          word);
    return word;
  }();
  return cap;
}

bool cpu_cap_allows(std::string_view name) {
  if (cpu_cap().empty()) return true;
  std::string word(name);
  std::erase(word, '_');
  if (word.starts_with("amx") || word.starts_with("avx10") || word == "avx512fp16") return false;
  if (cpu_cap() == "avx512_bf16") return true;
  if (word == "avx512bf16") return false;
  // What has come after AVX2: AVX-512, and AVX-VNNI and its like for CPUs without that.
  return cpu_cap() == "avx512" || !word.starts_with("avx") || word == "avx" || word == "avx2";
}

const std::string& cpu_name() {
  static const std::string name = [] {
    const std::string model = told("model name");
    return (model.empty() ? "unknown CPU" : model) + (cpu_cap().empty() ? "" : ", " + cpu_cap() + " at most");
  }();
  return name;
}

bool cpu_has(std::string_view flag) {
  static const Words flags = read_flags();
  return flags.contains(flag);
}

bool tiles_allowed() {
  static const bool allowed = [] {
    constexpr long request_permission = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    return cpu_has("amx_tile") && ::syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
  }();
  return allowed;
}

}  // namespace millrace
