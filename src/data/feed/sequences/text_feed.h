// Rows of tokens as a feed: to predict the next token, masked ones, or the class of a text.
#pragma once

#include <memory>
#include <optional>

#include "data/feed/feed.h"
#include "data/feed/sequences/plan.h"
#include "data/feed/sequences/spans.h"

namespace millrace::data {

/// How texts become rows.
enum class Rows { windows, packed, padded };

/// What a model of such rows takes: tokens i64 [batch, length], and but for windows segments i64 [batch, length] (0: padding, else
/// the number of the text within the row, from 1 on); packed, positions i64 [batch, length] within the text, too.
std::vector<Field> text_inputs(Rows rows);

struct TextFeedOptions {
  Rows rows = Rows::windows;
  PlanOptions plan;  // next_token is set by what is learnt
  uint64_t seed = 1;
  /// Tokens to be predicted are masked; else each predicts the next one. Not used where texts have classes.
  std::optional<SpanOptions> spans;
  int32_t mask = 0;        // what stands for a masked token
  int64_t vocabulary = 0;  // below which random tokens are drawn
  std::vector<std::string> notes;
};

/// Fields: text_inputs(), then labels i64 [batch] of texts with classes, else targets i64 [batch, length], and counted where not
/// all places have one. Rows are made in next(); they are a function of {seed, epoch, position} and copied from memory. Masked are
/// spans (spans.h): of 10 of them 8 become the mask, one becomes random tokens, one stays (as SpanBERT does, Joshi et al.,
/// arXiv 1907.10529). Where no batches are left out, the order is that of epoch 0.
std::unique_ptr<Feed> text_feed(std::shared_ptr<const Texts> texts, TextFeedOptions options);

}  // namespace millrace::data
