// Settings as words of a text: "affine 15 scale=0.9..1.1", "conv 32 3 stride=2", "weighted COLUMN".
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/settings.h>

namespace millrace {

/// How the settings are written: "affine DEGREES [translate=0] [scale=1..1]". Names in CAPITALS are words
/// that must be there, in their order (with `optional` all of them or none; a text that is usually something
/// may be missing), and a list of texts, or a file's name, takes all that are left, one at least; true or
/// false is the name or nothing; other numbers are name=0.5, two numbers (a range) name=0.5..1, at any place.
std::string usage_of(const std::string& name, const std::vector<Setting>& settings, bool optional = false);
/// The settings of such a text, whose first word is the name. InputError quotes the text, and says what is
/// wrong and the usage. `what`: "augmentation".
Settings parse_words(std::string_view what, std::string_view text, const std::vector<Setting>& settings,
                     bool optional = false);
/// InputError as that of parse_words().
[[noreturn]] void wrong_words(std::string_view what, std::string_view text, const std::string& why,
                              const std::string& usage);
/// For --help: a line for each setting: its name, meaning, type and range.
std::string settings_help(const std::vector<Setting>& settings);

/// A setting of two numbers.
std::pair<double, double> range_of(const Settings& settings, std::string_view name);

}  // namespace millrace
