// Values as TOML.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <millrace/settings.h>

namespace millrace::task {

std::string toml_text(bool value);
std::string toml_text(int64_t value);
/// No fraction where there is none: whole numbers are taken for numbers.
std::string toml_text(double value);
std::string toml_text(const std::string& value);
std::string toml_text(const std::vector<std::string>& list);
std::string toml_text(const std::vector<double>& list);
/// { name = value, … }
std::string toml_text(const std::map<std::string, std::string>& table);
std::string toml_text(const std::map<std::string, double>& table);
std::string toml_text(const SettingValue& value);

}  // namespace millrace::task
