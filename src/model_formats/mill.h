// The artifact (.mill): docs/mill.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/session.h>

namespace millrace::mill {

inline constexpr std::string_view kMagic = "MILLRACE";
inline constexpr uint32_t kVersion = 4;

/// What a graph's constants are called, as inputs, where they lie in the section of weights: kConstant,
/// their number, and behind a point what makes the name one of its own.
inline constexpr std::string_view kConstant = "\x01";
/// Constants of so many bytes lie there; smaller ones stand in the graph's text.
inline constexpr int64_t kLeastOutside = 65;

struct BuildOptions {
  /// Sets of sizes of all named dimensions to compile for.
  std::vector<Bindings> sizes;
  /// Dimensions whose sizes in between are filled up: those of SessionModel::independent, and others that the
  /// caller knows nothing looks along. These are tried on made-up inputs.
  std::vector<std::string> independent = {};
  std::string precision = {};  // empty: the model's own
  std::function<void(const std::string& line)> report = [](const std::string&) {};
};

/// Compiles a model for all sizes and writes what that takes. InputError, also where places along a dimension
/// that is said to be independent are seen to look at each other; IoError.
void build(const SessionModel& model, const BuildOptions& options, const std::filesystem::path& path);

/// A model that was built. InputError when the file is damaged, cut short or of another version.
SessionModel load(const std::filesystem::path& path);
/// Checks every byte. InputError.
void verify(const std::filesystem::path& path);
/// The sets of sizes that it was built for.
std::vector<Bindings> sizes_of(const std::filesystem::path& path);
/// What was built, in lines for people: sizes, sections.
std::vector<std::string> describe(const std::filesystem::path& path);

}  // namespace millrace::mill
