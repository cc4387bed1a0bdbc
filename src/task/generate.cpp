#include "task/generate.h"

#include <algorithm>

#include "base/format.h"
#include "eval/metric.h"
#include "task/judge_labels.h"

namespace millrace::task {

const Continuable* next_token_input(const Task& task) {
  if (task.inputs.size() != 1 || task.outputs.size() != 1 || !task.outputs[0]->from()) return nullptr;
  return task.outputs[0]->from()->continuable();
}

namespace {

/// Probabilities of what follows these tokens, of which the model sees the last that fit into a row.
void next_probabilities(Predictor& predictor, const Continuable& input, std::span<const int32_t> ids,
                        std::vector<double>& probabilities) {
  ids = ids.last(std::min(ids.size(), static_cast<size_t>(input.most())));
  const std::vector<Array> row = input.row_of(ids);
  const Array logits = predictor.logits(row, input.most()).at(0);
  const auto wide = static_cast<size_t>(input.vocabulary());
  eval::softmax(logits.as<float>().subspan((ids.size() - 1) * wide, wide), probabilities);
}

}  // namespace

std::vector<int32_t> most_probable_tokens(Predictor& predictor, const Continuable& input,
                                          std::vector<int32_t> ids, int64_t count) {
  const size_t own = ids.size();
  std::vector<double> probabilities;
  for (int64_t k = 0; k < count; ++k) {
    next_probabilities(predictor, input, ids, probabilities);
    ids.push_back(static_cast<int32_t>(most_probable(probabilities, 1)[0]));
  }
  return {ids.begin() + static_cast<std::ptrdiff_t>(own), ids.end()};
}

bool generates(const Task& task) { return next_token_input(task) != nullptr; }

Continuation go_on(Predictor& predictor, const Task& task, const std::string& text, int64_t tokens,
                   int64_t top) {
  const Continuable* const input = next_token_input(task);
  if (!input) fail<InputError>("the model does not predict the next token");
  std::vector<int32_t> ids = input->encode(text);
  if (ids.empty()) fail<InputError>("an empty text: there is nothing to go on from");
  const size_t own = ids.size();
  Continuation result;
  std::vector<double> probabilities;
  for (int64_t k = 0; k < std::max<int64_t>(tokens, 1); ++k) {
    next_probabilities(predictor, *input, ids, probabilities);
    const std::vector<size_t> order = most_probable(probabilities, k == 0 ? top : 1);
    if (k == 0)
      for (const size_t i : order) {
        const auto id = static_cast<int32_t>(i);
        result.next.push_back({id, input->decode({&id, 1}), probabilities[i]});
      }
    if (k < tokens) ids.push_back(static_cast<int32_t>(order[0]));
  }
  result.text = input->decode(std::span(ids).subspan(own));
  return result;
}

}  // namespace millrace::task
