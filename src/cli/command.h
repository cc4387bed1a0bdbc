// What a verb says about itself: its arguments, options and examples. Keeps CLI11 out of the verbs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace millrace::cli {

struct Verb;
/// A verb: declares its command line and returns what it does (the exit code).
using Action = std::function<int()>;

/// One verb's command line. Variables are set before the action runs.
class Command {
 public:
  Command& positional(const std::string& name, std::string& value, const std::string& doc,
                      bool required = true);
  /// Takes the remaining arguments.
  Command& positional(const std::string& name, std::vector<std::string>& values, const std::string& doc,
                      bool required = true);
  Command& option(const std::string& name, std::string& value, const std::string& doc);
  Command& option(const std::string& name, int64_t& value, const std::string& doc);
  Command& option(const std::string& name, std::optional<int64_t>& value, const std::string& doc);
  Command& option(const std::string& name, double& value, const std::string& doc);
  Command& flag(const std::string& name, bool& value, const std::string& doc);
  /// Text under the options of --help: examples first.
  Command& footer(const std::string& text);
  /// For a verb that consists of verbs, as `millrace data head`: the action runs the one that was given.
  Action choose(const std::vector<const Verb*>& verbs);

 private:
  friend int run_command_line(int argc, char** argv);
  explicit Command(void* app) : app_(app) {}
  void* app_;
};

struct Verb {
  std::string name, summary;
  Action (*declare)(Command& command);
  int place;  // in the list of --help
};

/// Every verb, in the order of the help text.
const std::vector<const Verb*>& verbs();

/// Parses and runs. 0: success, 1: an error (printed as one message), 2: wrong usage.
int run_command_line(int argc, char** argv);

}  // namespace millrace::cli
