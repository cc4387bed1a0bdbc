// Where the time of a step goes.
#include <fmt/core.h>
#include <optional>

#include "base/file.h"
#include "base/format.h"
#include "cli/model_step.h"
#include "cli/outputs.h"
#include "cli/profile_report.h"
#include "cli/verbs.h"
#include "runtime/run_clock.h"
#include "train/trainer.h"

namespace millrace::cli {
namespace {

struct ProfileArguments : StepArguments {
  std::string trace, html;
  int64_t steps = 10, depth = 0, kernels = 20;
};

/// A recipe's step, data loading included.
Profile profile_recipe(const ProfileArguments& a, ProfileTitle& title) {
  train::Trainer trainer(train::recipe_of(a.recipe, a.overrides), a.observer());
  const Machine machine = this_machine();
  Program& program = trainer.program();
  // The loader has batches ahead when the first steps begin: only when those are used up does waiting show.
  const int64_t warm_up = machine.threads + 4;
  int64_t done = 0;
  std::vector<StepMarks> marks;
  std::optional<StepCounters> counters;
  train::DataTimes begin;
  trainer.rehearse([&](const StepMarks& m) {
    if (++done == warm_up) {
      counters.emplace();
      begin = trainer.data_times();
      program.set_profiling(true);
    }
    if (done > warm_up) marks.push_back(m);
    return done < warm_up + a.steps;
  });
  const task::Recipe::Train& train = trainer.recipe().train;
  title = {a.recipe, step_text(true, train.batch, train.precision, program), train.batch,
           trainer.verdict(trainer.data_times() - begin)};
  if (program.run_times().empty())
    fail<InputError>(
        "none of the {} steps had rows of the longest rows, whose step is profiled: --steps more", a.steps);
  auto counts = counters->per_step(static_cast<int>(marks.size()));
  Profile profile = make_profile(program.launches(), program.run_times(), marks, machine);
  profile.counters = std::move(counts);
  return profile;
}

Profile profile_model(const ProfileArguments& a, ProfileTitle& title) {
  ZooStep step(a.zoo);
  title = {a.zoo.model,
           step_text(a.zoo.train, a.zoo.batch, a.zoo.precision, step.program()) +
               (a.zoo.train ? ", " + a.zoo.optimizer : ""),
           a.zoo.batch, ""};
  return profile_steps(
      step.program(), [&] { step.run(); }, static_cast<int>(a.steps), 0);
}

/// A model that a session loads: inference on made-up inputs.
Profile profile_file(const ProfileArguments& a, ProfileTitle& title) {
  ModelStep step(a);
  title = {a.recipe, step.detail(), step.items(), ""};
  return profile_steps(
      step.program(), [&] { step.run(); }, static_cast<int>(a.steps), 0);
}

int run_profile(ProfileArguments& a) {
  require_named(a.trace, "--trace");
  require_named(a.html, "--html");
  const bool file = a.of_file();
  if (a.steps < 1) fail<InputError>("--steps is 1 or more, not {}", a.steps);
  ProfileTitle title;
  const Profile profile = file                  ? profile_file(a, title)
                          : a.zoo.model.empty() ? profile_recipe(a, title)
                                                : profile_model(a, title);
  if (!a.trace.empty()) write_file(a.trace, profile_trace(profile, title));
  if (!a.html.empty()) write_file(a.html, profile_page(profile, title));
  if (a.json) {
    fmt::print("{}\n", profile_json(profile, title, static_cast<int>(a.depth)));
    return 0;
  }
  fmt::print("{}", profile_text(profile, title, static_cast<int>(a.depth), static_cast<int>(a.kernels)));
  if (!a.trace.empty()) fmt::print("{}: open it in https://ui.perfetto.dev or chrome://tracing\n", a.trace);
  if (!a.html.empty()) fmt::print("{}: roofline and flame chart, for any browser\n", a.html);
  return 0;
}

Action declare_profile(Command& command) {
  auto a = std::make_shared<ProfileArguments>();
  a->declare(command)
      .option("--steps", a->steps, "steps to measure, after a warm-up")
      .option("--depth", a->depth, "layers by their first so many parts; 0: whole names")
      .option("--kernels", a->kernels, "slowest kernels to list")
      .option("--trace", a->trace, "write the median step as Chrome trace events (Perfetto opens them)")
      .option("--html", a->html, "write a page with roofline and flame chart")
      .flag("--json", a->json, "print one JSON object with every launch")
      .footer(
          "Runs some steps (a recipe's with its data; nothing is saved) and compares each kernel with this "
          "machine's\n"
          "limits: the first time, these are measured for some seconds (millrace machine). docs/profile.md "
          "explains "
          "the figures.\n\n"
          "  millrace profile examples/letters.toml --html profile.html\n"
          "  millrace profile --model resnet18_cifar --batch 128 --optimizer sgd --depth 2\n"
          "  millrace profile model.onnx --sizes batch=16 --html model.html\n");
  return [a] { return run_profile(*a); };
}

}  // namespace

MILLRACE_VERB(profile){"profile",
                       "say where the time of a step goes, and how near the machine's limits it is",
                       declare_profile, 120};

}  // namespace millrace::cli
