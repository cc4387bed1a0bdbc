#include <millrace/decoding.h>

#include "base/format.h"

namespace millrace::nn {
namespace {

thread_local Decoding* current_decoding = nullptr;

}  // namespace

Decoding::Decoding(Step step) : step_(std::move(step)), outer_(current_decoding) { current_decoding = this; }
Decoding::~Decoding() { current_decoding = outer_; }
Decoding* Decoding::current() { return current_decoding; }

Tensor Decoding::attend(const Tensor& qkv, int64_t heads, int64_t shared_heads) {
  const Dim rows = qkv.dim(0), tokens = qkv.dim(1);
  const int64_t both = 2 * shared_heads, all = heads + both, width = qkv.dim(2).size() / all;
  const Tensor split = cast(reshape(qkv, {rows, tokens, all, width}), step_.dtype);
  const Tensor cache =
      Tensor::symbol(fmt::format("cache {}", caches_.size()), {step_.dtype, {step_.capacity, both, width}});
  const Tensor written = millrace::apply(
      "scatter_rows", std::vector<Tensor>{cache, step_.slots, slice(split, 2, heads, all)})[0];
  caches_.push_back(cache);
  written_.push_back(written);
  const Tensor y =
      millrace::apply("paged_attention",
                      std::vector<Tensor>{slice(split, 2, 0, heads), written, step_.pages, step_.positions},
                      {{"page", step_.page}})[0];
  return reshape(cast(y, qkv.dtype()), {rows, tokens, heads * width});
}

Tensor embedded_places(const Tensor& table, const Tensor& tokens) {
  if (const Decoding* decoding = Decoding::current()) return embedding(table, decoding->step().positions);
  const Dim length = tokens.dim(1);
  if (!length.is_static() || length.size() > table.dim(0).size())
    fail<TypeError>("the model takes at most {} tokens, not {}", table.dim(0).str(), length.str());
  return slice(table, 0, 0, length.size());
}

Tensor asked_places(const Tensor& x) {
  const Decoding* decoding = Decoding::current();
  if (!decoding || !decoding->step().last.defined() || x.dim(1) == 1) return x;
  const Dim width = x.dim(2);
  const Tensor flat = reshape(x, {x.dim(0).size() * x.dim(1).size(), width});
  return reshape(embedding(flat, decoding->step().last), {x.dim(0), 1, width});
}

}  // namespace millrace::nn
