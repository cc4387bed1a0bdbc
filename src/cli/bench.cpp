#include <chrono>
#include <filesystem>
#include <fmt/core.h>

#include "base/format.h"
#include "base/seconds_since.h"
#include "cli/bench_data.h"
#include "cli/bench_generate.h"
#include "cli/bench_infer.h"
#include "cli/profile_report.h"
#include "cli/verbs.h"
#include "cli/zoo.h"
#include "optim/kinds.h"

namespace millrace::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct BenchArguments {
  std::string mode, batch, sizes;
  ZooOptions zoo;
  BenchDataOptions data;
  int64_t below = 2;  // which all models have ids for
  double seconds = 2;
  int64_t prompt = 32;
  bool profile = false;
};

/// Runs the step for at least `seconds` after a warm-up and returns items per second.
template <typename Step>
double items_per_second(double seconds, Step& step) {
  for (int i = 0; i < 3; ++i) step.run();
  int64_t runs = 0;
  const auto start = Clock::now();
  do {
    step.run();
    ++runs;
  } while (seconds_since(start) < seconds);
  return static_cast<double>(runs * step.batch()) / seconds_since(start);
}

void print_items(const BenchArguments& a, double items) {
  fmt::print("{} {} {} {} items/s {:.2f}\n", a.mode, a.zoo.model, a.zoo.batch, a.zoo.precision, items);
}

int run_bench(BenchArguments& a) {
  if (a.mode == "data") {
    if (!a.batch.empty()) a.data.batch = parse_batch(a.batch);
    a.data.source = a.zoo.model;
    a.data.seconds = a.seconds;
    return bench_data(a.data);
  }
  if (a.mode != "train" && a.mode != "infer" && a.mode != "generate")
    fail<InputError>("MODE must be train, infer, generate or data, but it is '{}'", a.mode);
  if (a.batch.empty()) fail<InputError>("BATCH is missing: how many items a step has");
  a.zoo.batch = parse_batch(a.batch);
  if (a.mode == "generate") return bench_generate(a.zoo, a.prompt, a.seconds, a.profile);
  a.zoo.train = a.mode == "train";
  if (!a.zoo.train && !a.profile) {
    InferBench step(a.zoo, a.sizes, a.below);
    print_items(a, items_per_second(a.seconds, step));
    return 0;
  }
  if (!a.zoo.train && std::filesystem::exists(a.zoo.model))
    fail<InputError>("--profile is of built-in networks here; millrace profile {} --sizes batch={} says more",
                     a.zoo.model, a.zoo.batch);
  ZooStep step(a.zoo);
  const double items = items_per_second(a.seconds, step);
  if (a.profile)
    print_kernels(profile_steps(
                      step.program(), [&] { step.run(); }, 3, 0.2),
                  30);
  const Program& program = step.program();
  if (a.zoo.train)
    fmt::print("{} memory {:.1f} MB\n", a.zoo.model,
               static_cast<double>(program.arena_bytes() + program.bound_bytes()) / 1e6);
  print_items(a, items);
  return 0;
}

Action declare_bench(Command& command) {
  auto a = std::make_shared<BenchArguments>();
  command.positional("MODE", a->mode, "train, infer, generate or data")
      .positional(
          "NAME", a->zoo.model,
          "one of" + model_names() +
              "; for infer, also a file of a model (.onnx) or a run folder; for data, a source of pictures")
      .positional("BATCH", a->batch, "items a step (of data: 64)", false)
      .option("--precision", a->zoo.precision, "fp32, bf16, bf16-pure or fp16 (default fp32)")
      .option("--optimizer", a->zoo.optimizer,
              fmt::format("for train, with its usual settings (default adamw): {}",
                          fmt::join(optim::optimizer_kinds().names(), ", ")))
      .option("--seconds", a->seconds, "how long to measure, after a warm-up (default 2)")
      .option("--memory", a->zoo.memory,
              "most memory of a step, e.g. 1.5GB: activations are computed again where that saves most")
      .option("--accumulate", a->zoo.accumulate, "train in so many parts of the batch, one after the other")
      .flag("--exact", a->zoo.exact, "no algorithm that changes more than the order of sums (Winograd's)")
      .option("--prompt", a->prompt, "generate: tokens of each beginning (default 32)")
      .option("--sizes", a->sizes,
              "infer: of a model's named dimensions, but for the batch: length=128,width=7")
      .option("--below", a->below, "infer: integers given to a file's model are below this (default 2)")
      .option("--size", a->data.size, "data: pictures become random-resized-crop SIZE and flip (default 224)")
      .option("--augment", a->data.augment, "data: augmentations instead, with commas between them")
      .flag("--plain", a->data.plain, "data: no augmentation")
      .flag("--cached", a->data.cached, "data: pictures are decoded once, before")
      .flag("--floats", a->data.floats, "data: batches are also normalised to 32-bit floats")
      .flag("--profile", a->profile, "print the slowest kernels of a step (millrace profile says more)")
      .footer(
          "The last word printed is items per second.\n\n"
          "  millrace bench train resnet18_cifar 128 --optimizer sgd\n"
          "  millrace bench infer resnet18 1 --precision bf16 --profile\n"
          "  millrace bench generate gpt_mini 8\n"
          "  millrace bench infer model.onnx 8 --sizes length=128\n"
          "  millrace bench data photos.tar --size 224\n"
          "  millrace bench data cifar10/train.tar --augment 'pad-crop 4,flip' --cached\n");
  return [a] { return run_bench(*a); };
}

}  // namespace

MILLRACE_VERB(bench){
    "bench",
    "measure how fast a network trains or generates, or a model infers here, or a source becomes batches",
    declare_bench, 130};

}  // namespace millrace::cli
