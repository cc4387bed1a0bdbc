// Going on with a text, token by token.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <millrace/array.h>
#include <millrace/decoder.h>
#include <millrace/tensor.h>

#include "task/predictor.h"
#include "task/task.h"

namespace millrace::task {

/// Texts as tokens, for whoever goes on with them.
class TextTokens {
 public:
  virtual ~TextTokens() = default;
  /// Of a text that goes on.
  virtual std::vector<int32_t> encode(const std::string& text) const = 0;
  virtual std::string decode(std::span<const int32_t> ids) const = 0;
  /// What a text begins behind: the tokens that end one. May be empty.
  virtual std::vector<int32_t> beginning() const = 0;
  /// The token that ends a text, where one does nothing else.
  virtual std::optional<int32_t> end() const = 0;
};
/// By a tokenizer alone (data::open_tokenizer() says which there are), as a model from elsewhere was trained
/// with it: what it puts in front of a text is there, and the usual names of ends are known. InputError,
/// IoError as there.
std::unique_ptr<TextTokens> text_tokens(const std::string& tokenizer);

/// An input whose next tokens an output predicts.
class Continuable : public TextTokens {
 public:
  /// Ids are below this.
  virtual int64_t vocabulary() const = 0;
  /// Most tokens in a row.
  virtual int64_t most() const = 0;
  /// The tokens of the first text of a row of arrays.
  virtual std::vector<int32_t> ids_of(std::span<const Array> row) const = 0;
  /// The arrays of one row, as long as rows can be, that begins with these tokens (at most most() of them).
  virtual std::vector<Array> row_of(std::span<const int32_t> ids) const = 0;
  /// The fields of new tokens of rows with one text each, from both as i64 [rows, tokens].
  virtual std::vector<Tensor> decoded_fields(const Tensor& tokens, const Tensor& positions) const = 0;
};
/// The input whose next tokens the task predicts; null where it does not.
const Continuable* next_token_input(const Task& task);

/// What may come next, and what follows when the most probable token is taken each time.
struct Continuation {
  std::string text;  // decoded tokens that were added
  struct Token {
    int32_t id = 0;
    std::string text;
    double probability = 0;
  };
  std::vector<Token> next;  // the `top` most probable first tokens
};

/// What follows tokens when the most probable one is taken each time.
std::vector<int32_t> most_probable_tokens(Predictor& predictor, const Continuable& input,
                                          std::vector<int32_t> ids, int64_t count);

/// Does the task predict the next token of a text?
bool generates(const Task& task);
/// InputError when it does not, or the text is empty. `tokens`: how many to go on by (0: none).
Continuation go_on(Predictor& predictor, const Task& task, const std::string& text, int64_t tokens,
                   int64_t top);

struct GenerateOptions {
  int64_t tokens = 100;  // at most, behind each beginning
  SampleOptions sample = {};
  std::string stop = {};  // a text that ends one, besides the tokenizer's end
};
/// What became of one beginning.
struct Generated {
  enum class End { length, end, stop };
  std::string text;  // behind the beginning; without what ended it
  std::vector<int32_t> tokens;
  End end = End::length;
};
struct GenerateTimes {
  int64_t prompt_tokens = 0, tokens = 0, steps = 0;  // steps: those of new tokens, one for all rows
  double prompt_seconds = 0, seconds = 0;
};
/// Goes on with texts (an empty one: begins behind the end of another), as many at a time as the decoder has
/// rows, each as if it were alone: text i draws its random numbers from stream `i`. A text longer than a row
/// goes on from the last half of a row. `on_token` hears of each new token as it comes. InputError for
/// options out of their range, and for what cannot begin.
std::vector<Generated> generate(Decoder& decoder, const TextTokens& tokens,
                                std::span<const std::string> texts, const GenerateOptions& options,
                                GenerateTimes& times,
                                const std::function<void(size_t text, int32_t token)>& on_token = {});

}  // namespace millrace::task
