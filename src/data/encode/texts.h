// The texts of a data set as tokens: what rows are planned from.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <millrace/dataset.h>

#include "data/codecs/text/tokenizer.h"
#include "data/encode/token_store.h"

namespace millrace::data {

struct TextOptions {
  std::string column;  // of the texts; as text_column() takes it
  std::string separator;
  bool special = false;  // what the tokeniser puts around a text
  /// Which part: all, what is trained on, or what is kept to test on (`test_share` of it).
  enum class Part { all, train, test } part = Part::all;
  double test_share = 0;
  /// Of what is trained on only a piece, somewhere by `seed`: that share of its tokens.
  double sample = 1;
  uint64_t seed = 0;
  /// Tokens beyond so many bytes go to a file (token_store.h).
  int64_t most_bytes = int64_t{2} << 30;
  std::function<void(int64_t, int64_t)> progress;  // (texts done, in all)
};

/// What rows are planned from: how long each text is, or whatever else has a length.
struct Lengths {
  std::string path;
  std::vector<int64_t> begins;   // of text i in all of them; one more than there are texts
  std::vector<int64_t> indices;  // of text i in the data set
  /// What an order by class goes by; empty where there are none, as of texts that were just read.
  std::vector<int64_t> labels;
  std::vector<std::string> classes;
  /// What they are called, and what they are made of.
  const char *unit = "texts", *items = "tokens";

  int64_t count() const { return static_cast<int64_t>(begins.size()) - 1; }
  int64_t length(int64_t text) const {
    return begins[static_cast<size_t>(text) + 1] - begins[static_cast<size_t>(text)];
  }
  int64_t longer_than(int64_t length) const {
    int64_t texts = 0;
    for (int64_t text = 0; text < count(); ++text) texts += this->length(text) > length;
    return texts;
  }
};

struct Texts : Lengths {
  TokenStore tokens;
  int64_t bytes = 0;  // of the texts, separators included
  std::string file;   // where the tokens are, if not in memory
};

/// Reads and tokenises on all CPUs; the same for any number of them. The part to test on is the end (from the
/// first text on that begins behind 1 - test_share of the tokens; of a single text the end of it). InputError
/// when the column is missing or of another kind, or a part is empty. What of local and remote files was
/// written to a file before is taken from there, as long as neither they nor the tokeniser nor what is read
/// of them has changed.
Texts read_texts(const Dataset& dataset, const Tokenizer& tokenizer, const TextOptions& options);

}  // namespace millrace::data
