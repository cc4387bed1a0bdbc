#include "cli/command.h"

#include <CLI/CLI.hpp>
#include <csignal>
#include <filesystem>
#include <fmt/core.h>
#include <optional>
#include <system_error>
#include <unistd.h>

#include <millrace/error.h>
#include <millrace/version.h>

#include "base/cpu.h"
#include "base/format.h"
#include "base/suggest.h"
#include "base/thread_pool.h"
#include "base/utf8.h"
#include "cli/interrupt.h"
#include "ir/operators.h"

namespace millrace::cli {
namespace {

CLI::App& app_of(void* app) { return *static_cast<CLI::App*>(app); }

void print_error(const std::string& message) {
  const bool colour = ::isatty(STDERR_FILENO) && !std::getenv("NO_COLOR");
  // A terminal that is gone takes no message, which is no reason to abort.
  std::fputs(
      fmt::format("{}error:{} {}\n", colour ? "\033[31m" : "", colour ? "\033[0m" : "", printable(message))
          .c_str(),
      stderr);
}

/// "millrace data head": of the innermost verb that was given.
std::string full_name(const CLI::App& app) {
  if (const auto inner = app.get_subcommands(); !inner.empty()) return full_name(*inner[0]);
  std::string name = app.get_name();
  for (const CLI::App* above = app.get_parent(); above; above = above->get_parent())
    name = above->get_name() + " " + name;
  return name;
}

/// `millrace trian` and `millrace data haed` get the nearest verb.
std::optional<std::string> unknown_verb(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return std::nullopt;
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (sub->get_name() == argv[1]) return unknown_verb(*sub, argc - 1, argv + 1);
    names.push_back(sub->get_name());
  }
  if (names.empty()) return std::nullopt;
  return fmt::format("there is no verb '{}'{} {} --help lists them", argv[1],
                     did_you_mean(argv[1], names, ";"), full_name(app));
}

/// "; did you mean '--seeds'?" behind a flag that the innermost verb does not have.
std::string near_flag(const CLI::App& app, const std::vector<std::string>& unexpected) {
  if (const auto inner = app.get_subcommands(); !inner.empty()) return near_flag(*inner[0], unexpected);
  std::vector<std::string> names;
  for (const CLI::App* each = &app; each; each = each->get_parent())
    for (const CLI::Option* option : each->get_options())
      for (const std::string& name : option->get_lnames()) names.push_back(name);
  for (const std::string& word : unexpected)
    if (word.starts_with("--"))
      if (const std::string best = near(word.substr(2, word.find('=') - 2), names); !best.empty())
        return fmt::format("; did you mean '--{}'?", best);
  return "";
}

/// Output that could not be written (a full disk) is an error, found at the latest here; that its reader is
/// gone is none.
bool all_written() { return (std::fflush(stdout) == 0 && !std::ferror(stdout)) || interrupted(); }

/// The parser takes an argument in brackets apart, as a list of its own; JSON is such, and so may names be.
constexpr char kWhole = '\x1f';

std::vector<std::string> with_lists_whole(int argc, char** argv) {
  std::vector<std::string> words;
  for (int i = argc - 1; i > 0; --i) {  // the parser takes the last one first
    std::string word = argv[i];
    if (word.starts_with('[') && word.ends_with(']')) word += kWhole;
    words.push_back(std::move(word));
  }
  return words;
}

const CLI::Validator& whole_again() {
  static const CLI::Validator made(
      [](std::string& word) {
        if (word.ends_with(kWhole)) word.pop_back();
        return std::string();
      },
      "");
  return made;
}

constexpr const char* not_written = "the output could not be written in full: is the disk full?";

}  // namespace

Command& Command::positional(const std::string& name, std::string& value, const std::string& doc,
                             bool required) {
  app_of(app_).add_option(name, value, doc)->required(required)->type_name("")->transform(whole_again());
  return *this;
}

Command& Command::positional(const std::string& name, std::vector<std::string>& values,
                             const std::string& doc, bool required) {
  app_of(app_).add_option(name, values, doc)->required(required)->type_name("")->transform(whole_again());
  return *this;
}

Command& Command::option(const std::string& name, std::string& value, const std::string& doc) {
  app_of(app_).add_option(name, value, doc)->transform(whole_again());
  return *this;
}

Command& Command::option(const std::string& name, int64_t& value, const std::string& doc) {
  app_of(app_).add_option(name, value, doc)->capture_default_str();
  return *this;
}

Command& Command::option(const std::string& name, std::optional<int64_t>& value, const std::string& doc) {
  app_of(app_).add_option(name, value, doc);
  return *this;
}

Command& Command::option(const std::string& name, double& value, const std::string& doc) {
  app_of(app_).add_option(name, value, doc)->capture_default_str();
  return *this;
}

Command& Command::flag(const std::string& name, bool& value, const std::string& doc) {
  app_of(app_).add_flag(name, value, doc);
  return *this;
}

Command& Command::footer(const std::string& text) {
  app_of(app_).footer(text);
  return *this;
}

Action Command::choose(const std::vector<const Verb*>& verbs) {
  CLI::App& app = app_of(app_);
  app.require_subcommand(1);
  auto actions = std::make_shared<std::vector<std::pair<CLI::App*, Action>>>();
  for (const Verb* verb : verbs) {
    CLI::App* sub = app.add_subcommand(verb->name, verb->summary)->fallthrough();
    Command command(sub);
    actions->emplace_back(sub, verb->declare(command));
  }
  return [actions] {
    for (const auto& [sub, action] : *actions)
      if (sub->parsed()) return action();
    return 2;
  };
}

int run_command_line(int argc, char** argv) {
  CLI::App app("Millrace: from data of any kind to a trained, exported model.", "millrace");
  app.footer(
      "Begin with:\n"
      "  millrace letters data/letters                make a small data set to play with\n"
      "  millrace train examples/letters.toml         train on it\n"
      "  millrace predict runs/letters-1 PICTURE      use what was trained\n"
      "  millrace init DATA > recipe.toml             begin with data of your own\n\n"
      "millrace VERB --help explains each verb.");
  app.require_subcommand(0, 1);
  app.set_version_flag("--version", std::string("millrace ") + version());
  std::vector<Action> actions;
  std::vector<CLI::App*> subcommands;
  int threads = 0;
  for (const Verb* verb : verbs()) {
    CLI::App* sub = app.add_subcommand(verb->name, verb->summary);
    Command command(sub);
    actions.push_back(verb->declare(command));
    sub->add_option("--threads", threads,
                    "threads for all computing (default: all CPUs; results are the same)")
        ->check(CLI::Range(1, 4096));
    subcommands.push_back(sub);
  }
  if (const auto message = unknown_verb(app, argc, argv)) {
    print_error(*message);
    return 2;
  }
  try {
    app.parse(with_lists_whole(argc, argv));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help, --version
      const int code = app.exit(error);
      if (all_written()) return code;
      print_error(not_written);
      return 1;
    }
    print_error(error.what() + near_flag(app, app.remaining(true)));
    for (CLI::App* sub : app.get_subcommands())
      fmt::print(stderr, "{} --help shows how it is used\n", full_name(*sub));
    return 2;
  }
  if (app.get_subcommands().empty()) {
    fmt::print("{}", app.help());
    return 0;
  }
  std::signal(SIGXFSZ, SIG_IGN);  // a file larger than ulimit -f allows: the write fails and says so
  try {
    (void)cpu_cap();
    check_operators();
    use_cpus(threads);
    for (size_t i = 0; i < subcommands.size(); ++i)
      if (subcommands[i]->parsed()) {
        const int code = actions[i]();
        if (!all_written()) fail<IoError>("{}", not_written);
        return code;
      }
  } catch (const Error& error) {
    print_error(error.what());
  } catch (const std::bad_alloc&) {
    print_error("out of memory: a smaller train.batch, data.cache_mb or model needs less");
  } catch (const std::filesystem::filesystem_error& error) {
    print_error(fmt::format("{}: {}", error.path1().string(), error.code().message()));
  } catch (const std::system_error& error) {
    print_error(error.what());
  } catch (const std::exception& error) {
    print_error(fmt::format("{} (a defect of Millrace: please report it)", error.what()));
  }
  return 1;
}

}  // namespace millrace::cli
