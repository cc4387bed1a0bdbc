// What inputs of texts share: the tokenizer, how rows are made, and how a text is told from a file.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/codecs/text/tokenizer.h"
#include "data/encode/texts.h"
#include "data/feed/sequences/token_part.h"
#include "task/generate.h"
#include "task/input.h"

namespace millrace::task {

/// `sequences` as it is written.
struct SequenceLayout {
  using Layout = data::TokenOptions::Layout;
  Layout layout = Layout::windows;
  int64_t buckets = 1;           // how many lengths, chosen by the data
  std::vector<int64_t> lengths;  // or these
  bool fixed() const { return layout == Layout::padded && buckets == 1 && lengths.empty(); }

  /// InputError, naming `key`, where it is none of `allowed` ("windows", "packed", "padded", "buckets").
  static SequenceLayout parse(const std::string& text, const std::string& key,
                              const std::vector<std::string>& allowed, int64_t longest);
};

/// The settings column, tokenizer and length.
std::vector<Setting> token_settings();

/// What an input of texts has learnt: which column, which tokenizer.
struct TokenEncoding {
  std::string column;
  uint32_t digest = 0;  // of the tokenizer
  int64_t vocabulary = 0;
};

class TokenInput : public Input, private Continuable {
 public:
  /// InputError when the tokenizer cannot be read, or (`loaded`) is another than the encoding's.
  TokenInput(Section section, SequenceLayout layout, TokenEncoding known, bool loaded);

  const data::Tokenizer& tokenizer() const { return *tokenizer_; }
  int64_t vocabulary() const final { return known_.vocabulary; }
  const std::string& column() const { return known_.column; }
  /// What evaluation learns of a row.
  virtual data::TokenOptions::Learn learns() const = 0;
  std::vector<Array> row_of(std::span<const int32_t> ids) const final;
  std::vector<int32_t> ids_of(std::span<const Array> row) const final;
  const Continuable* continuable() const override {
    return learns() == data::TokenOptions::Learn::next ? this : nullptr;
  }
  int64_t shared_ids(const Input& other) const override;

  std::string encoding() const override;
  std::vector<std::string> notes() const override;
  std::vector<data::Field> fields() const override;
  std::vector<Tensor> graph(std::span<const Tensor> fields, bool training) const override;
  void describe(nn::ModelOptions& options) const override;
  std::string gives() const override { return "tokens"; }
  int64_t length() const override { return fixed() ? 0 : most(); }
  int64_t most() const final { return section_.settings.integer("length"); }

  bool plans() const override { return layout_.layout != data::TokenOptions::Layout::windows && !fixed(); }
  std::string without_plan() const override { return input_key(section_) + ".sequences = \"padded\""; }
  std::shared_ptr<const data::Part> part(const Reading& reading, Purpose purpose) const override;
  std::unique_ptr<data::RowPlan> rows(const data::Part& part, const Reading& reading, Purpose purpose,
                                      int64_t batch) const override;

  bool is_sample(const std::string& argument) const override;
  std::shared_ptr<const data::Dataset> sample(const std::string& argument) const override;

  std::vector<std::string> text_columns() const override { return {known_.column}; }
  std::string text(std::span<const Array> row) const override;
  std::string row_text(const data::Part& part, const data::RowPick& row) const override;

 protected:
  const SequenceLayout& layout() const { return layout_; }
  /// All rows are padded to one length: nothing depends on which of them share a batch.
  bool fixed() const { return layout_.fixed(); }
  /// Put behind each text.
  virtual std::string separator() const { return {}; }
  virtual void masking(data::TokenOptions& /*options*/) const {}

 private:
  std::vector<int32_t> encode(const std::string& text) const override {
    return tokenizer_->encode(text, false);
  }
  std::string decode(std::span<const int32_t> ids) const override { return tokenizer_->decode(ids, false); }
  std::vector<int32_t> beginning() const override;
  std::optional<int32_t> end() const override;
  std::vector<Tensor> decoded_fields(const Tensor& tokens, const Tensor& positions) const override;

  SequenceLayout layout_;
  TokenEncoding known_;
  std::shared_ptr<const data::Tokenizer> tokenizer_;
  mutable std::vector<std::string> opened_;  // what the part made last is made of
};

/// What stands for masked tokens: the tokenizer's own, else one more id.
int32_t mask_of(const data::Tokenizer& tokenizer);
/// The column of texts that a section names, else the one that is found. InputError says why there is none.
std::string text_column(const Section& section, const data::Dataset& samples,
                        const std::vector<std::string>& taken);
/// What encoding() wrote.
TokenEncoding parse_token_encoding(const Section& section, const std::string& text);
/// The model of this input as a recipe names it; "" where it does not.
std::string model_kind_of(const Section& input, const Recipe& recipe);

}  // namespace millrace::task
