#include "task/generate.h"

#include <filesystem>
#include <fmt/core.h>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/format.h"
#include "base/is_run.h"
#include "base/size_text.h"
#include "cli/json.h"
#include "cli/verbs.h"
#include "runtime/machine.h"
#include "task/decode_model.h"
#include "train/load_model.h"

namespace millrace::cli {
namespace {

struct GenerateArguments {
  std::string run;
  std::vector<std::string> prompts;
  std::string file, checkpoint, precision, memory, tokenizer;
  task::GenerateOptions options;
  int64_t batch = 8, seed = 0, length = 0;
  bool json = false, stats = false;
};

/// The beginnings: arguments, lines of a file, or one that is empty.
std::vector<std::string> beginnings(const GenerateArguments& a) {
  std::vector<std::string> all = a.prompts;
  if (!a.file.empty()) {
    std::ifstream file;
    if (a.file != "-") {
      file.open(a.file);
      if (!file) fail<InputError>("--prompts {}: cannot be read; check the path", a.file);
    }
    std::istream& lines = a.file == "-" ? std::cin : file;
    for (std::string line; std::getline(lines, line);) {
      if (line.ends_with('\r')) line.pop_back();
      if (all.empty() && line.starts_with("\xef\xbb\xbf")) line.erase(0, 3);
      all.push_back(line);
    }
    if (all.empty()) fail<InputError>("--prompts {}: there is no line in it", a.file);
  }
  if (all.empty()) all.emplace_back();
  return all;
}

const char* end_name(task::Generated::End end) {
  switch (end) {
    case task::Generated::End::end:
      return "end";
    case task::Generated::End::stop:
      return "stop";
    case task::Generated::End::length:
      break;
  }
  return "length";
}

void print_generated(const GenerateArguments& a, const std::string& prompt,
                     const task::Generated& generated) {
  if (a.json) {
    print_json(json_object({{"prompt", prompt},
                            {"continuation", generated.text},
                            {"tokens", generated.tokens},
                            {"end", std::string(end_name(generated.end))}}));
    return;
  }
  // A token may be a part of a character.
  fmt::print("{}\n", nlohmann::json::parse(Json(prompt + generated.text).text).get<std::string>());
}

/// Tokens a second, and what share of what the memory gives reading weights and keys takes.
void print_stats(const task::GenerateTimes& times, const Decoder& decoder) {
  fmt::print(stderr, "{} tokens of prompts in {:.3f} s; {} tokens in {} steps, {:.3f} s\n",
             times.prompt_tokens, times.prompt_seconds, times.tokens, times.steps, times.seconds);
  if (times.steps == 0) return;
  const double read =
      static_cast<double>(decoder.weight_bytes()) * static_cast<double>(times.steps) / times.seconds;
  const double limit = this_machine().ram().gb_per_s;
  fmt::print(stderr,
             "{:.0f} tokens/s; {} of weights a step, {:.1f} GB/s of {:.1f} that the memory gives: {:.0f} %; "
             "{} for keys and values\n",
             static_cast<double>(times.tokens) / times.seconds, memory_text(decoder.weight_bytes()),
             read / 1e9, limit, 100 * read / 1e9 / limit, memory_text(decoder.cache_bytes()));
}

/// A model, and the tokens that it is about.
struct Opened {
  std::unique_ptr<task::Task> task;          // of a run
  std::unique_ptr<task::TextTokens> own;     // of a model from elsewhere
  const task::TextTokens* tokens = nullptr;  // of either
  std::optional<Decoder> decoder;
};

Opened open_run(const GenerateArguments& a, const DecoderOptions& options) {
  if (!a.tokenizer.empty())
    fail<InputError>("{}", std::filesystem::exists(a.run)
                               ? "--tokenizer is for models from elsewhere: a run has its own"
                               : a.run + ": there is no such file");
  Opened opened;
  std::vector<std::string> warnings;
  opened.task = std::make_unique<task::Task>(train::load_model(a.run, warnings, {}, a.checkpoint));
  for (const std::string& line : warnings) fmt::print(stderr, "{}\n", line);
  opened.tokens = task::next_token_input(*opened.task);
  opened.task->require_predictions(a.run);
  if (!opened.tokens)
    fail<InputError>("{} does not predict what comes next, so that it cannot go on: millrace predict asks it",
                     a.run);
  opened.decoder.emplace(std::make_shared<const DecodeModel>(task::decode_model(*opened.task, a.precision)),
                         options);
  return opened;
}

Opened open_file(const GenerateArguments& a, const DecoderOptions& options) {
  if (!a.checkpoint.empty()) fail<InputError>("--checkpoint is for runs: {} is a file", a.run);
  std::string tokenizer = a.tokenizer;
  if (tokenizer.empty()) {
    const std::filesystem::path beside = std::filesystem::path(a.run).parent_path() / "tokenizer.json";
    if (!std::filesystem::exists(beside))
      fail<InputError>(
          "{}: what are its tokens? Give the tokenizer that it was trained with, as --tokenizer "
          "tokenizer.json",
          a.run);
    tokenizer = beside.string();
  }
  Opened opened;
  opened.own = task::text_tokens(tokenizer);
  opened.tokens = opened.own.get();
  opened.decoder.emplace(Decoder::load(a.run, options));
  return opened;
}

int run_generate(GenerateArguments& a) {
  if (a.batch < 1) fail<InputError>("--batch {}: at least one text at a time", a.batch);
  if (a.seed < 0) fail<InputError>("--seed {}: from 0 on", a.seed);
  a.options.sample.seed = static_cast<uint64_t>(a.seed);
  check_sample_options(a.options.sample);
  const std::vector<std::string> texts = beginnings(a);
  if (a.length < 0) fail<InputError>("--length {}: at least one token", a.length);
  DecoderOptions options;
  options.precision = a.precision;
  options.longest = a.length;
  options.rows = std::min<int64_t>(a.batch, static_cast<int64_t>(texts.size()));
  if (!a.memory.empty()) options.memory = static_cast<int64_t>(parse_bytes("--memory", a.memory));
  const bool file = std::filesystem::is_regular_file(a.run) && !is_run(a.run);
  Opened opened = file ? open_file(a, options) : open_run(a, options);
  task::GenerateTimes times;
  const std::vector<task::Generated> all =
      task::generate(*opened.decoder, *opened.tokens, texts, a.options, times);
  for (size_t i = 0; i < all.size(); ++i) print_generated(a, texts[i], all[i]);
  if (a.stats) print_stats(times, *opened.decoder);
  return 0;
}

Action declare_generate(Command& command) {
  auto a = std::make_shared<GenerateArguments>();
  task::GenerateOptions& o = a->options;
  command
      .positional("MODEL", a->run, "a run folder, or an ONNX file, of a model that predicts the next token")
      .positional("PROMPT", a->prompts, "a beginning each; none: behind the end of another text", false)
      .option("--prompts", a->file, "further beginnings, a line each (-: from standard input)")
      .option("--tokens", o.tokens, "most tokens behind each (default 100)")
      .option("--temperature", o.sample.temperature,
              "0: the most probable token each time (default); 1: as the "
              "model has it; higher: more varied")
      .option("--top-k", o.sample.top_k, "choose among so many of the most probable tokens")
      .option("--top-p", o.sample.top_p, "choose among the fewest that have this probability together")
      .option("--repetition-penalty", o.sample.repetition,
              "above 1: tokens that were there are less probable")
      .option("--seed", a->seed, "of the random numbers (default 0)")
      .option("--stop", o.stop, "end where this text comes, besides the tokenizer's end of a text")
      .option("--batch", a->batch, "most texts at a time (default 8)")
      .option("--memory", a->memory, "most memory for keys and values, e.g. 500MB")
      .option("--length", a->length,
              "most tokens of a text, of those that the model takes (default: all; 1024 of an ONNX file that "
              "takes any)")
      .option("--precision", a->precision, "fp32 or bf16, else that of the run (of a file fp32)")
      .option("--tokenizer", a->tokenizer,
              "of an ONNX file: tokenizer.json, vocab.txt or byte (default: tokenizer.json beside it)")
      .option("--checkpoint", a->checkpoint, checkpoint_doc)
      .flag("--json", a->json, "print one JSON object each: tokens, and why it ended")
      .flag("--stats", a->stats, "say how fast it was, and how near to what the memory gives")
      .footer(
          "Each text is what it would be alone: its random numbers are those of the seed and of its "
          "number.\n\n"
          "  millrace generate runs/shakespeare-1 'To be, or' --tokens 200\n"
          "  millrace generate runs/shakespeare-1 'ROMEO:' 'JULIET:' --temperature 0.8 --top-k 40 --seed "
          "1\n"
          "  millrace generate gpt2.onnx 'To be, or' --tokenizer tokenizer.json\n");
  return [a] { return run_generate(*a); };
}

}  // namespace

MILLRACE_VERB(generate){"generate", "go on with texts, token by token", declare_generate, 82};

}  // namespace millrace::cli
