// Texts as a tokeniser sees them.
#include <algorithm>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "data/encode/texts.h"
#include "data/formats/open_dataset.h"
#include "task/recipe.h"

namespace millrace::cli {
namespace {

struct TokensArguments {
  std::string source, tokenizer = "byte", column;
  int64_t count = 5;
  bool special = false, json = false;
};

/// A token on one line: blanks and control characters can be told apart.
std::string visible(const std::string& token) {
  std::string text;
  for (const char c : token) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n')
      text += "\\n";
    else if (c == '\t')
      text += "\\t";
    else if (byte < 0x20 || byte == 0x7f || (token.size() == 1 && byte >= 0x80))
      text += fmt::format("\\x{:02x}", byte);
    else
      text += c;
  }
  return text;
}

std::vector<int64_t> ids_of(const data::Texts& texts, int64_t text) {
  std::vector<int64_t> ids(static_cast<size_t>(texts.length(text)));
  texts.tokens.get(texts.begins[static_cast<size_t>(text)], ids);
  return ids;
}

void print_tokens_json(const data::Texts& texts, const data::Tokenizer& tokenizer, int64_t count) {
  nlohmann::ordered_json json{{"texts", texts.count()},
                              {"tokens", texts.tokens.size()},
                              {"bytes", texts.bytes},
                              {"vocabulary", tokenizer.size()}};
  json["head"] = nlohmann::ordered_json::array();
  for (int64_t i = 0; i < count; ++i) {
    const std::vector<int64_t> ids = ids_of(texts, i);
    const std::vector<int32_t> narrow(ids.begin(), ids.end());
    json["head"].push_back({{"ids", ids}, {"text", tokenizer.decode(narrow, true)}});
  }
  fmt::print("{}\n", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

void print_lengths(const data::Texts& texts) {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < texts.count(); ++i) lengths.push_back(texts.length(i));
  std::sort(lengths.begin(), lengths.end());
  const auto at = [&](double share) {
    return lengths[static_cast<size_t>(share * static_cast<double>(lengths.size() - 1))];
  };
  fmt::print("tokens a text: {} to {}, half have {} at most, 90 % {}, 99 % {}\n\n", lengths.front(),
             lengths.back(), at(0.5), at(0.9), at(0.99));
  Table table({"tokens", "texts", "share", "<"});
  int64_t low = 0, high = 1;
  for (size_t begin = 0; begin < lengths.size(); low = high, high *= 2) {
    const size_t end =
        static_cast<size_t>(std::lower_bound(lengths.begin(), lengths.end(), high) - lengths.begin());
    const double share = static_cast<double>(end - begin) / static_cast<double>(lengths.size());
    if (end > begin)
      table.row({low + 1 == high ? std::to_string(low) : fmt::format("{}-{}", low, high - 1),
                 thousands(static_cast<int64_t>(end - begin)), fmt::format("{:.1f} %", 100 * share),
                 std::string(static_cast<size_t>(40 * share + 0.5), '#')});
    begin = end;
  }
  fmt::print("{}", table.str());
}

int run_data_tokens(const TokensArguments& a) {
  const auto tokenizer = data::open_tokenizer(task::expand(a.tokenizer));
  const auto dataset = data::open_dataset(task::expand(a.source));
  data::TextOptions options;
  options.column = a.column;
  options.special = a.special;
  options.most_bytes = INT64_MAX;
  const data::Texts texts = data::read_texts(*dataset, *tokenizer, options);
  const int64_t count = std::clamp<int64_t>(a.count, 0, texts.count());
  if (a.json) {
    print_tokens_json(texts, *tokenizer, count);
    return 0;
  }
  fmt::print(
      "{}: {} texts of {} bytes; {} tokens ({} of {}), {:.2f} bytes each\n", texts.path,
      thousands(texts.count()), thousands(texts.bytes), thousands(texts.tokens.size()),
      tokenizer->description(), thousands(tokenizer->size()),
      static_cast<double>(texts.bytes) / static_cast<double>(std::max<int64_t>(texts.tokens.size(), 1)));
  print_lengths(texts);
  for (int64_t i = 0; i < count; ++i) {
    std::string line;
    for (const int64_t id : ids_of(texts, i)) {
      const std::string token = tokenizer->token(static_cast<int32_t>(id));
      line += fmt::format("{}{}", line.empty() ? "" : "|", visible(token));
    }
    fmt::print("{}{}: {}\n", i == 0 ? "\n" : "", i, line);
  }
  return 0;
}

Action declare_data_tokens(Command& command) {
  auto a = std::make_shared<TokensArguments>();
  command.positional("SOURCE", a->source, "data of any format that has a column of texts")
      .option("--tokenizer", a->tokenizer, "byte, a tokenizer.json or a vocab.txt")
      .option("--text", a->column, "column of the texts, where there are several")
      .option("-n,--count", a->count, "texts to print as tokens")
      .flag("--special", a->special, "with what the tokenizer puts around a text")
      .flag("--json", a->json,
            "for programs: one JSON object, with the first texts as ids, and as text again without special "
            "tokens")
      .footer(
          "  millrace data tokens corpus.txt\n"
          "  millrace data tokens messages.tsv --text message --tokenizer tokenizer.json -n 20\n");
  return [a] { return run_data_tokens(*a); };
}

}  // namespace

MILLRACE_DATA_VERB(tokens){"tokens", "cut texts into tokens, count and measure them", declare_data_tokens,
                           30};

}  // namespace millrace::cli
