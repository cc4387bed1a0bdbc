// Going on with a text, token by token.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "task/predictor.h"
#include "task/task.h"

namespace millrace::task {

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

/// Does the task predict the next token of a text?
bool generates(const Task& task);
/// InputError when it does not, or the text is empty. `tokens`: how many to go on by (0: none).
Continuation go_on(Predictor& predictor, const Task& task, const std::string& text, int64_t tokens,
                   int64_t top);

}  // namespace millrace::task
