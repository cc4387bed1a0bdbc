// Rows of tokens: what a model of texts takes, and where it learns from them what to predict.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/encode/texts.h"
#include "data/feed/part.h"
#include "data/feed/sequences/spans.h"

namespace millrace::data {

struct TokenOptions {
  /// How texts become rows: windows over all texts joined, several whole texts in a row, or a text a row
  /// (sequences/plan.h).
  enum class Layout { windows, packed, padded } layout = Layout::windows;
  /// The most tokens in a row.
  int64_t length = 256;
  /// What is predicted: no tokens, each one from those before it, or masked ones from those around them.
  enum class Learn { nothing, next, masked } learn = Learn::nothing;
  /// Tokens that a row needs behind its own: the last target.
  int64_t behind() const { return learn == Learn::next ? 1 : 0; }
  SpanOptions spans = {};  // which are masked
  int32_t mask = 0;        // what stands for a masked token
  /// Ids are below this; random ones are drawn from it, too.
  int64_t vocabulary = 0;
  /// Rows have `length` places, not so many as those of the batch's `length`: where another part, or an order
  /// of the samples, decides which of them share a batch. Not of packed rows.
  bool fixed = false;
};

/// How a text is read, where texts are not read as a whole before.
struct TextReader {
  std::shared_ptr<const Tokenizer> tokenizer;
  ColumnPlace column;
  std::string separator;  // put behind each text
};

/// Fields, all [batch, length] (where `fixed`, with its number), one for each place of a row:
///   tokens     i64, 0 where there is none
///   segments   i64, not with windows: the number of the text within the row, from 1 on; 0: padding
///   positions  i64, of packed rows: the place within the text, from 0 on
///   targets    i64, where tokens are predicted: the id that is right there; -1: none counts
///   counted    f32, where not all places count (other layouts than windows, masked ones): places of the
///   batch / number that
///              count at those, else 0
/// Masked are spans (spans.h), drawn by seed, epoch and position: of 10 of them 8 become the mask, one
/// becomes random tokens, one stays (as SpanBERT does, Joshi et al., arXiv 1907.10529).
class TokenPart final : public Part {
 public:
  /// InputError: a length below 1, or below 2 where tokens are masked.
  TokenPart(std::shared_ptr<const Texts> texts, const TokenOptions& options);
  /// Rows of samples that are read one by one: padded, or windows as window_stream() cuts them.
  TokenPart(TextReader reader, const TokenOptions& options);

  std::span<const Field> fields() const override { return fields_; }
  /// How many tokens, and so many: those of the longest row, one more where that is the last target.
  size_t stored_bytes() const override;
  std::string read(const Dataset& from, int64_t index, const SampleKey* random, Scratch* scratch,
                   std::byte* stored) const override;
  /// A row has its extracts, else the text of the sample that its key names (InternalError where that has
  /// none), in either case cut to the row's length.
  void put(const std::byte* stored, const Row& row, Scratch* scratch,
           std::span<std::byte* const> arrays) const override;
  void pad(const Row& row, std::span<std::byte* const> arrays) const override;
  void finish(int64_t batch, int64_t length, std::span<std::byte* const> arrays) const override;
  int64_t memory() const override;

  /// CRC-32C of all tokens, each as 8 bytes.
  uint32_t digest() const override;
  const Texts& texts() const { return *texts_; }
  const TokenOptions& options() const { return options_; }
  /// What stands in the row of a sample of the data set, `length` tokens at the most. InternalError where it
  /// is no text.
  Extract extract(int64_t sample, int64_t length) const;

 private:
  struct Places;
  void lay_out();
  Places places(const Row& row, std::span<std::byte* const> arrays) const;
  void mask(const Row& row, int64_t size, Places& at) const;

  std::shared_ptr<const Texts> texts_;  // empty where `reader_` reads
  TextReader reader_;
  TokenOptions options_;
  std::vector<Field> fields_;
  std::vector<int64_t> text_of_;  // of each sample of the data set; -1: it is none of the texts
};

}  // namespace millrace::data
