// Going on with a text, token by token.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <millrace/array.h>

#include "task/predictor.h"
#include "task/task.h"

namespace millrace::task {

/// An input whose next tokens an output predicts, as whoever goes on with a text needs it.
class Continuable {
 public:
  virtual ~Continuable() = default;
  virtual std::vector<int32_t> encode(const std::string& text) const = 0;
  virtual std::string decode(std::span<const int32_t> ids) const = 0;
  /// Ids are below this.
  virtual int64_t vocabulary() const = 0;
  /// Most tokens in a row.
  virtual int64_t most() const = 0;
  /// The tokens of the first text of a row of arrays.
  virtual std::vector<int32_t> ids_of(std::span<const Array> row) const = 0;
  /// The arrays of one row, as long as rows can be, that begins with these tokens (at most most() of them).
  virtual std::vector<Array> row_of(std::span<const int32_t> ids) const = 0;
};

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

}  // namespace millrace::task
