// A model compiled ahead of time.
#include <algorithm>
#include <filesystem>
#include <fmt/core.h>

#include "base/format.h"
#include "base/size_text.h"
#include "base/words.h"
#include "cli/model_sizes.h"
#include "cli/outputs.h"
#include "cli/verbs.h"
#include "model_formats/mill.h"
#include "session/format.h"
#include "session/summary.h"

namespace millrace::cli {
namespace {

struct BuildArguments {
  std::string model, out, sizes, fill, precision;
  bool force = false;
};

/// "batch=1|8,length=64|128": every combination. A dimension that nobody names is as for inspect.
std::vector<Bindings> combinations(const std::string& text, const std::vector<SessionValue>& inputs) {
  std::vector<Bindings> all = {{}};
  for (const std::string& part : split_list(text)) {
    const size_t equals = part.rfind('=');
    if (equals == std::string::npos) parse_sizes(part, inputs);  // says what is wrong
    std::vector<Bindings> more;
    for (const std::string& choice : split_list(part.substr(equals + 1), '|')) {
      const Bindings one = parse_sizes(part.substr(0, equals + 1) + choice, inputs);
      for (Bindings sizes : all) {
        for (const auto& [name, size] : one)
          if (!sizes.emplace(name, size).second)
            fail<InputError>("--sizes {}: '{}' is there twice", text, name);
        more.push_back(std::move(sizes));
      }
    }
    if (more.empty()) fail<InputError>("--sizes {}: '{}' has no size", text, part);
    all = std::move(more);
  }
  constexpr size_t most = 256;
  if (all.size() > most)
    fail<InputError>("--sizes {}: are {} sets, at most {} are built", text, all.size(), most);
  for (Bindings& sizes : all) sizes = example_sizes(inputs, std::move(sizes));
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

/// A built model may take the place of one; what else is there is not lost to a slip of the finger.
void require_replaceable(const BuildArguments& a) {
  std::error_code ignored;
  if (std::filesystem::equivalent(a.model, a.out, ignored))
    fail<InputError>("-o {}: is the model itself, which would be lost; write to another file", a.out);
  if (!a.force && std::filesystem::is_regular_file(a.out, ignored) &&
      std::filesystem::file_size(a.out, ignored) > 0 && !model_formats().at("mill").recognise(a.out))
    fail<InputError>(
        "{}: is there already and is no built model; --force replaces it, or write to another file", a.out);
}

int run_build(const BuildArguments& a) {
  require_named(a.out, "-o");
  if (a.out.empty()) fail<InputError>("-o is missing: the file to write, such as model.mill");
  require_replaceable(a);
  const SessionModel model = load_session_model(a.model);
  for (const std::string& line : model.notes) fmt::print(stderr, "{}\n", line);
  if (model.compile.ready) fail<InputError>("{}: is built already", a.model);
  mill::BuildOptions options;
  options.sizes = combinations(a.sizes, model.inputs);
  options.independent = model.independent;
  if (!a.fill.empty() &&
      std::find(options.independent.begin(), options.independent.end(), a.fill) == options.independent.end())
    options.independent.push_back(a.fill);
  options.precision = a.precision;
  options.report = [](const std::string& line) { fmt::print("{}\n", line); };
  mill::build(model, options, a.out);
  fmt::print("{}: {}\n", a.out, memory_text(static_cast<int64_t>(std::filesystem::file_size(a.out))));
  return 0;
}

Action declare_build(Command& command) {
  auto a = std::make_shared<BuildArguments>();
  command.positional("MODEL", a->model, "a model that a session loads: .onnx, a run folder")
      .option("-o,--out", a->out, "the file to write: model.mill")
      .option("--sizes", a->sizes,
              "sizes of the model's named dimensions to compile for, several of one with | between them: "
              "batch=1|8,length=128 (else 1 for the first one of an input, 64)")
      .option("--fill", a->fill,
              "a dimension along which the model's rows do not see each other, such as batch: sizes in "
              "between are "
              "filled up (a run folder says so itself)")
      .option("--precision", a->precision, "fp32, bf16 or fp16 (else the model's own)")
      .flag("--force", a->force, "replace a file that is no built model")
      .footer(
          "Compiles a model ahead of time, into one file that a session maps and runs at once: graphs as the "
          "passes left\nthem, weights as they are and packed for kernels, kernels' choices, and the code for "
          "this CPU. Elsewhere kernels\nare chosen, and weights packed, when it is loaded. Sizes that are "
          "not "
          "named are compiled when they are first\nasked for. Code in the file is run: open only what you "
          "trust.\n\n"
          "  millrace build model.onnx -o model.mill --sizes 'batch=1|2|3|4' --fill batch\n"
          "  millrace inspect model.mill --verify\n");
  return [a] { return run_build(*a); };
}

}  // namespace

MILLRACE_VERB(build){"build", "compile a model into one file that opens at once", declare_build, 96};

}  // namespace millrace::cli
