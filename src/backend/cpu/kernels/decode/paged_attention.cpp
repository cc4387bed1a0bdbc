// Attention of new tokens over the keys and values of all before them, which lie in pages.
#include <algorithm>

#include <millrace/operator.h>

#include "backend/cpu/kernels/attention/problem.h"
#include "backend/cpu/kernels/decode/decode_math.h"
#include "base/format.h"
#include "ops/attention.h"
#include "target/provider.h"
#include "target/slot.h"

namespace millrace::cpu {
namespace {

constexpr int64_t kQueries = 8;  // tokens of a chunk
constexpr int64_t kStep = 16;    // keys that are scored together

struct PagedProblem {
  int64_t batch, tokens, heads, shared, width;
  int64_t slots, pages, page;
  int64_t distances = 0, biased = 0;  // of the bias, and for how many heads; 0: there is none
  float scale;
  DType dtype;
};

/// A chunk has one head of keys and values, the heads of q that share it, and some tokens of a row. Only keys
/// that a token sees are read, so that a step takes time by what is there, not by what there is room for.
class PagedAttention : public Kernel {
 public:
  explicit PagedAttention(const PagedProblem& problem) : p_(problem) {
    blocks_ = (p_.tokens + kQueries - 1) / kQueries;
    slots_ = Slots(chunks());
  }
  std::unique_ptr<Kernel> another() const override { return std::make_unique<PagedAttention>(*this); }
  int64_t slots_bytes() const override { return slots_.count() * own(nullptr).bytes; }
  std::string description() const override {
    return fmt::format("pages of {} keys, {}, {} chunks", p_.page, decode_maths().front()->name, chunks());
  }

  void run(void* const* operands, void* const* results, void* scratch, DeviceContext device) override {
    device.threads().parallel(chunks(), [&](int64_t chunk) {
      const Slot slot(slots_);
      const Own o = own(static_cast<char*>(scratch) + slot.index() * own(nullptr).bytes);
      const int64_t head = chunk % p_.shared, block = chunk / p_.shared % blocks_,
                    row = chunk / p_.shared / blocks_;
      if (p_.dtype == bf16)
        attend<uint16_t>(operands, results, o, row, head, block * kQueries, decode_maths().front()->halves);
      else
        attend<float>(operands, results, o, row, head, block * kQueries, decode_maths().front()->floats);
    });
  }

 private:
  struct Own {
    float *q, *scores, *sum;
    int64_t bytes;
  };
  int64_t chunks() const { return p_.batch * blocks_ * p_.shared; }
  Own own(void* base) const {
    Scratch s(base);
    // A softmax that begins at any key rounds its count up.
    return {s.floats(p_.width), s.floats(p_.pages * p_.page + kStep), s.floats(p_.width), s.used()};
  }

  template <typename T>
  void attend(void* const* operands, void* const* results, const Own& o, int64_t row, int64_t head,
              int64_t first, const PageMath<T>& math) const {
    const int64_t each = p_.heads / p_.shared, last = std::min(p_.tokens, first + kQueries);
    const auto* const positions = static_cast<const int64_t*>(operands[3]) + row * p_.tokens;
    for (int64_t token = first; token < last; ++token) {
      Keys keys{.seen = std::min(positions[token] + 1, p_.pages * p_.page), .place = positions[token]};
      if (p_.distances > 0) keys.from = std::max(int64_t{0}, positions[token] + 1 - p_.distances);
      for (int64_t h = head * each; h < (head + 1) * each; ++h) {
        const int64_t at = ((row * p_.tokens + token) * p_.heads + h) * p_.width;
        if (p_.distances > 0)
          keys.bias = static_cast<const float*>(operands[4]) + (p_.biased > 1 ? h : 0) * p_.distances;
        attend_one(static_cast<const T*>(operands[0]) + at, static_cast<const T*>(operands[1]),
                   static_cast<const int64_t*>(operands[2]) + row * p_.pages,
                   static_cast<T*>(results[0]) + at, o, head, keys, math);
      }
    }
  }

  /// The keys [from, seen) that the token at `place` sees, and what is added to their scores by distance.
  struct Keys {
    int64_t from = 0, seen, place;
    const float* bias = nullptr;
  };

  /// One token of one head.
  template <typename T>
  void attend_one(const T* q, const T* cache, const int64_t* pages, T* result, const Own& o, int64_t head,
                  const Keys& keys, const PageMath<T>& math) const {
    std::fill_n(o.sum, p_.width, 0.0f);
    float factor = 0;
    if (keys.seen > keys.from) {
      for (int64_t i = 0; i < p_.width; ++i) o.q[i] = read(q[i]);
      const int64_t row = 2 * p_.shared * p_.width, begin = keys.from / p_.page * p_.page;
      for (int64_t key = begin; key < keys.seen; key += p_.page) {
        const int64_t count = std::min(p_.page, (keys.seen - key + kStep - 1) / kStep * kStep);
        if (const int64_t slot = slot_of(pages, key); slot >= 0)
          math.scores(o.q, cache + slot * row + head * p_.width, row, p_.width, count, o.scores + key);
        else
          std::fill_n(o.scores + key, count, 0.0f);
      }
      factor = 1 / softmax(o.scores, keys);
      for (int64_t key = begin; key < keys.seen; key += p_.page)
        if (const int64_t slot = slot_of(pages, key); slot >= 0) {
          const int64_t first = std::max(key, keys.from);
          math.mix(o.scores + first, cache + (slot + first - key) * row + (p_.shared + head) * p_.width, row,
                   p_.width, std::min(key + p_.page, keys.seen) - first, o.sum);
        }
    }
    for (int64_t i = 0; i < p_.width; ++i) write(result[i], o.sum[i] * factor);
  }

  float softmax(float* scores, const Keys& keys) const {
    const DecodeMath& math = *decode_maths().front();
    if (!keys.bias) return math.softmax(scores, keys.seen, p_.scale);
    for (int64_t key = keys.from; key < keys.seen; ++key)
      scores[key] = scores[key] * p_.scale + keys.bias[keys.place - key];
    return math.softmax(scores + keys.from, keys.seen - keys.from, 1);
  }

  /// Where the page of a key begins; -1: there is none, and its keys and values are zeros.
  int64_t slot_of(const int64_t* pages, int64_t key) const {
    const int64_t page = pages[key / p_.page];
    return page >= 0 && page < p_.slots / p_.page ? page * p_.page : -1;
  }

  static float read(float value) { return value; }
  static float read(uint16_t value) { return bf16_to_float(value); }
  static void write(float& to, float value) { to = value; }
  static void write(uint16_t& to, float value) { to = float_to_bf16(value); }

  PagedProblem p_;
  int64_t blocks_ = 0;
  Slots slots_;
};

std::unique_ptr<Kernel> build_paged(const KernelRequest& request) {
  const Shape &q = request.operand_type(0).shape, &cache = request.operand_type(1).shape;
  PagedProblem p{};
  p.batch = q[0].size();
  p.tokens = q[1].size();
  p.heads = q[2].size();
  p.width = q[3].size();
  p.slots = cache[0].size();
  p.shared = cache[1].size() / 2;
  p.pages = request.operand_type(2).shape[1].size();
  p.page = request.node.attributes.integer("page");
  if (request.node.operands.size() == 5) {
    const Shape& bias = request.operand_type(4).shape;
    p.biased = bias[0].size();
    p.distances = bias[1].size();
  }
  p.scale = static_cast<float>(ops::attention_scale(request.node.attributes, p.width));
  p.dtype = request.node.types[0].dtype;
  return std::make_unique<PagedAttention>(p);
}

std::optional<std::string> why_no_paged(const Graph& graph, const Node& node) {
  const DType dtype = node.types[0].dtype;
  if (dtype != f32 && dtype != bf16) return fmt::format("only f32 and bf16, not {}", dtype.name());
  if (node.attributes.integer("page") % kStep != 0) return "pages of no multiple of 16 keys";
  for (const Value& operand : node.operands)
    if (graph.type(operand).shape.count() == 0) return "an operand is empty";
  return std::nullopt;
}

}  // namespace

MILLRACE_PROVIDER(paged_attention){.name = "paged-attention",
                                   .doc = "attention over keys and values that lie in pages",
                                   .place = 65,
                                   .make = [] {
                                     return kernels_of({{"paged_attention", build_paged}}, why_no_paged);
                                   }};

}  // namespace millrace::cpu
