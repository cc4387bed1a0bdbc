#include "cli/bench_generate.h"

#include <chrono>
#include <fmt/core.h>

#include "base/format.h"
#include "base/seconds_since.h"
#include "base/size_text.h"
#include "optim/decode_graph.h"
#include "runtime/machine.h"

namespace millrace::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct Times {
  int64_t prompt_tokens = 0, steps = 0;
  double prompt_seconds = 0, seconds = 0;
};

/// All rows from their beginnings to the longest, the most probable token each time.
void grow(Decoder& decoder, int64_t prompt, Times& times) {
  std::vector<std::vector<int32_t>> rows;
  for (int64_t row = 0; row < decoder.rows(); ++row) {
    decoder.clear(row);
    std::vector<int32_t>& ids = rows.emplace_back();
    for (int64_t i = 0; i < prompt; ++i)
      ids.push_back(static_cast<int32_t>((7 * i + row) % decoder.vocabulary()));
  }
  const auto step = [&] {
    std::vector<NewTokens> fresh;
    for (size_t row = 0; row < rows.size(); ++row) fresh.push_back({static_cast<int64_t>(row), rows[row]});
    const Array logits = decoder.step(fresh);
    for (size_t row = 0; row < rows.size(); ++row)
      rows[row] = {sample_token(decoder.row(logits, static_cast<int64_t>(row)), {}, {}, row, 0)};
  };
  auto begin = Clock::now();
  step();
  times.prompt_seconds += seconds_since(begin);
  times.prompt_tokens += prompt * decoder.rows();
  begin = Clock::now();
  while (decoder.length(0) < decoder.longest()) {
    step();
    ++times.steps;
  }
  times.seconds += seconds_since(begin);
}

}  // namespace

int bench_generate(const ZooOptions& o, int64_t prompt, double seconds, bool profile) {
  const nn::Model model = nn::make_model(o.model);
  if (model.task != nn::Task::tokens)
    fail<InputError>("{} does not tell the next token: gpt_mini does", o.model);
  model.module->initialise(0);
  CompileOptions compile;
  compile.precision = o.precision;
  compile.exact = o.exact;
  const nn::InputSpec& input = model.inputs.at(0);
  DecodeModel decode = optim::decode_model(
      model.module, [](nn::Module& module, const Tensor& tokens, const Tensor&) { return module(tokens); },
      static_cast<int64_t>(input.high), input.type.shape[1].size(), compile);
  Decoder decoder(std::make_shared<const DecodeModel>(std::move(decode)), {.rows = o.batch});
  if (prompt < 1 || prompt >= decoder.longest())
    fail<InputError>("--prompt {}: from 1 to {} tokens, since rows grow to {}", prompt, decoder.longest() - 1,
                     decoder.longest());
  Times times;
  grow(decoder, prompt, times);  // compiles
  times = {};
  do grow(decoder, prompt, times);
  while (times.prompt_seconds + times.seconds < seconds);
  const Program& program = decoder.program(o.batch);
  if (profile) fmt::print("{}", program.explain());
  const double step = times.seconds / static_cast<double>(times.steps);
  const double read = static_cast<double>(decoder.weight_bytes()) / step / 1e9;
  const double limit = this_machine().ram().gb_per_s;
  fmt::print("{} weights {}, keys and values {}, computed in {}\n", o.model,
             memory_text(decoder.weight_bytes()), memory_text(decoder.cache_bytes()), program.precision());
  fmt::print("prompts of {} tokens: {:.0f} tokens/s\n", prompt,
             static_cast<double>(times.prompt_tokens) / times.prompt_seconds);
  fmt::print("a step takes {:.3f} ms: weights at {:.1f} GB/s, {:.0f} % of the {:.1f} that memory gives\n",
             1e3 * step, read, 100 * read / limit, limit);
  fmt::print("generate {} {} {} tokens/s {:.1f}\n", o.model, o.batch, o.precision,
             static_cast<double>(times.steps * decoder.rows()) / times.seconds);
  return 0;
}

}  // namespace millrace::cli
