// Decoding: sequences of tokens that grow, of which a model tells what comes next.
//
//   Decoder decoder = Decoder::load("runs/shakespeare-1", {.rows = 2});
//   const Array logits = decoder.step({{0, first_prompt}, {1, second_prompt}});   // f32[2, vocabulary]
//   const int32_t next = sample_token(decoder.row(logits, 0), {}, {.temperature = 0.8, .top_k = 40}, 0, 0);
//   decoder.step({{0, {&next, 1}}});
//
// Keys and values of earlier tokens are kept, so a step computes new tokens alone. They lie in pages of 16
// tokens, which rows take as they grow and give back when they are cleared: memory is what was asked for at
// the beginning, whatever comes. Rows need not be of one length, nor take part in each step.
//
// A row's logits are those that the model gives for the whole sequence, within rounding.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <millrace/array.h>
#include <millrace/graph.h>
#include <millrace/program.h>

namespace millrace {

/// Slots of a page.
constexpr int64_t decode_page = 16;

/// Sizes of one step.
struct DecodeShape {
  int64_t rows = 1, tokens = 1;         // new tokens of a row at most
  int64_t pages_of_row = 1, pages = 1;  // most of a row; in all
  bool every = false;                   // logits of every new token, not of each row's last one
};

/// A model as a decoder takes it.
struct DecodeModel {
  int64_t vocabulary = 0, longest = 0;  // ids are below; most tokens of a sequence
  /// From tokens, positions and slots i64[rows, tokens], pages i64[rows, pages_of_row], last i64[rows], the
  /// caches [pages · decode_page, …] and `weights`, to f32 logits and the caches as they become, each of
  /// which is written where the cache is. A position of -1 is no token, a slot of -1 keeps nothing, `last`
  /// says which of rows · tokens is asked for. One at a time calls it.
  std::function<Graph(const DecodeShape&)> graph;
  std::vector<Array> weights;
  CompileOptions compile;
  /// As of a SessionModel.
  std::function<void()> require_unchanged;
};

struct DecoderOptions {
  int64_t rows = 1;            // most sequences at a time
  int64_t longest = 0;         // most tokens of a sequence; 0: the model's (of an ONNX model 1,024 at most)
  int64_t memory = 0;          // bytes for keys and values; 0: for all rows at their longest
  std::string precision = {};  // of load(): "fp32" or "bf16"; "": the model's own
};

/// New tokens of a row.
struct NewTokens {
  int64_t row = 0;
  std::span<const int32_t> tokens;
};

class Decoder {
 public:
  /// Opens what one of the model formats recognises (a run folder, an ONNX model), as Session::load() does.
  /// InputError.
  static Decoder load(const std::filesystem::path& path, const DecoderOptions& options = {});
  /// InputError for a model that cannot be decoded, and for options that leave no room.
  explicit Decoder(std::shared_ptr<const DecodeModel> model, const DecoderOptions& options = {});
  ~Decoder();
  Decoder(Decoder&&) noexcept;
  Decoder& operator=(Decoder&&) noexcept;

  /// Appends tokens to some rows, each named once and by one token at least: f32[rows named, vocabulary],
  /// what may come behind the last one of each. InputError for tokens and rows that are none, a row that
  /// becomes too long, or too few pages left; nothing is changed then.
  Array step(std::span<const NewTokens> rows);
  Array step(std::initializer_list<NewTokens> rows) { return step(std::span(rows.begin(), rows.size())); }
  /// The same for one row, with logits behind each of its new tokens: f32[tokens, vocabulary].
  Array every(const NewTokens& row);
  /// A row of what step() gives.
  std::span<const float> row(const Array& logits, int64_t i) const;

  int64_t rows() const;
  int64_t longest() const;
  /// Most tokens of all rows together, each row's counted in whole pages.
  int64_t capacity() const;
  int64_t vocabulary() const;
  int64_t length(int64_t row) const;
  /// Forgets a row's tokens; its pages are free.
  void clear(int64_t row);

  /// Bytes of keys and values, and of the weights that a step reads.
  int64_t cache_bytes() const;
  int64_t weight_bytes() const;
  /// The program of steps of so many rows with one new token each, for whoever asks what it is made of.
  const Program& program(int64_t rows);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// How the next token is chosen, in this order: repetition, temperature, top_k, top_p.
struct SampleOptions {
  double temperature = 0;  // logits are divided by it; 0: the most probable token, always
  int64_t top_k = 0;       // among so many of the most probable; 0: all
  double top_p = 1;        // among the fewest that have this probability together
  double repetition = 1;   // logits of tokens that were there are divided by it (multiplied where negative)
  uint64_t seed = 0;
};

/// InputError names the option that is out of its range.
void check_sample_options(const SampleOptions& options);
/// One token id by logits. `before`: the tokens that count as repeated. The random number is that of (seed,
/// stream, place), so it depends on no other row.
int32_t sample_token(std::span<const float> logits, std::span<const int32_t> before,
                     const SampleOptions& options, uint64_t stream, uint64_t place);

}  // namespace millrace
