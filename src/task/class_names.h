// Names of classes: of the data, as recipes list them, and their order.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace millrace::task {

/// "7", "-3".
bool is_whole_number(std::string_view text);
/// Whole numbers by size where all are such, else by the alphabet; each once.
std::vector<std::string> sorted_names(std::vector<std::string> names);
/// A recipe's list, ["cat", "dog"], where "0..9" means ten numbers. InputError, naming `key`, when a class
/// comes twice.
std::vector<std::string> listed_names(const std::vector<std::string>& list, const std::string& key);
/// InputError, naming `key`, when a name comes twice.
void require_different(const std::vector<std::string>& names, const std::string& key);
/// "cat, dog, …": of many only the first ones.
std::string names_text(const std::vector<std::string>& names);
/// Names in JSON and back: any bytes.
std::vector<std::string> stored_names(const std::vector<std::string>& names);
std::vector<std::string> names_of_stored(std::vector<std::string> names);

}  // namespace millrace::task
