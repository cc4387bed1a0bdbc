// Recording a model for decoding: its own forward(), with the keys and values of earlier tokens in a cache.
#pragma once

#include <cstdint>
#include <vector>

#include <millrace/tensor.h>

namespace millrace::nn {

/// While one lives, models that are called on its thread see new tokens alone. Causal self_attention() writes
/// their keys and values into a cache and attends over that, the places of tokens are `positions`, and what
/// is behind the blocks is computed for the tokens that are asked for. A model needs no second network for
/// that: it calls the functions below, which outside of a Decoding do what their names say.
class Decoding {
 public:
  struct Step {
    Tensor positions;      // i64 [rows, tokens]: within the sequence; -1: no token
    Tensor slots;          // i64 [rows, tokens]: where keys and values go; -1: nowhere
    Tensor pages;          // i64 [rows, pages of a row]
    Tensor last;           // i64 [rows]: which of rows × tokens is asked for; undefined: all are
    int64_t page = 0;      // slots of a page
    int64_t capacity = 0;  // slots in all
    DType dtype = f32;     // of the caches
  };
  explicit Decoding(Step step);
  ~Decoding();
  Decoding(const Decoding&) = delete;
  /// Of this thread; null outside.
  static Decoding* current();

  const Step& step() const { return step_; }
  /// qkv as self_attention() takes it, of the next layer.
  Tensor attend(const Tensor& qkv, int64_t heads, int64_t shared_heads);

  /// Of each layer, a symbol [capacity, 2 · shared heads, width], and what it becomes.
  const std::vector<Tensor>& caches() const { return caches_; }
  const std::vector<Tensor>& written() const { return written_; }

 private:
  Step step_;
  std::vector<Tensor> caches_, written_;
  Decoding* outer_;
};

/// The embeddings, rows of `table`, of the places of a text's tokens (i64 [batch, length]). TypeError where
/// it has fewer.
Tensor embedded_places(const Tensor& table, const Tensor& tokens);
/// x [batch, length, width] as it is; in a Decoding that asks for one token of each row [batch, 1, width].
/// Whatever comes behind this looks at no other place.
Tensor asked_places(const Tensor& x);

}  // namespace millrace::nn
